import { Admission, type AdmissionHost } from './admission.js';
import { bucketOf } from './cooling.js';
import { DecidedCalls } from './decided-calls.js';
import type { Decision, Denial, Pending } from './decision.js';
import type { HeldPool, HeldUnits } from './held-pool.js';
import { HeldPools } from './held-pools.js';
import { HolderOutbox } from './holder-outbox.js';
import type { LeaseHolder, LeaseHolderOptions } from './holding.js';
import { type Demand, isGivenBack, type Pool } from './kinds.js';
import type { OwnerMessage, PoolAnswer, PoolRecall } from './messages.js';
import { type PoolView, untouched, viewOf } from './pool-view.js';
import { Waiting } from './waiting-line.js';

/** After a recall, what becomes idle goes back at once for so long. */
const contestedMs = 1000;
/** How often idle units are looked for. */
const sweepMs = 1000;

const atOnce = (run: () => void): void => run();
const closed = (): 'closed' => 'closed';

/** Makes a holder that has nothing yet. */
export function createLeaseHolder(options: LeaseHolderOptions): LeaseHolder {
  return new Holder(options);
}

class Holder implements LeaseHolder, AdmissionHost {
  readonly #now: () => number;
  readonly #maxWaiting: number;
  readonly #maxWaitMs: number;
  readonly #whenUnknown: () => 'open' | 'closed';
  readonly #outbox: HolderOutbox;
  readonly pools = new HeldPools();
  /** Those whose units other workers lack, or lacked a moment ago. */
  readonly #contested = new Set<HeldPool>();
  /** Those with calls that wait. */
  readonly #awaited = new Set<HeldPool>();
  readonly #decided = new DecidedCalls();
  #isConnected = true;
  /** What is held may be used until then. */
  #until = Number.POSITIVE_INFINITY;
  #sequence = 0;
  #sweptAt = Number.NEGATIVE_INFINITY;
  ticks = 0;
  /** When it last looked at its clock, or was told the time. */
  #seenAt = 0;

  constructor(options: LeaseHolderOptions) {
    const { now, send, defer = atOnce, whenUnknown = closed, maxWaiting = 1000, maxWaitMs = 1000 } = options;
    this.#now = now;
    this.#outbox = new HolderOutbox(send, defer);
    this.#whenUnknown = whenUnknown;
    this.#maxWaiting = maxWaiting;
    this.#maxWaitMs = maxWaitMs;
  }

  take(demands: readonly Demand[], found: HeldPool[], now: number): Admission | null {
    this.#seenAt = now;
    if (this.#firstShort(demands, found, ++this.#sequence, now) !== -1) return null;
    return this.#admit(demands, found, now);
  }

  acquire(demands: readonly Demand[], onDecided: (decision: Decision) => void): Decision | Pending {
    const now = this.#now();
    this.#seenAt = now;
    const sequence = ++this.#sequence;
    const found: HeldPool[] = [];
    const short = this.#firstShort(demands, found, sequence, now);
    if (short === -1) return this.#admit(demands, found, now);
    const denial = this.#refuse(demands, sequence, now);
    if (denial !== null) return denial;
    const onCancel = (cancelled: Waiting) => this.#cancel(cancelled);
    const waiting = new Waiting({ sequence, deadline: now + this.#maxWaitMs, demands, onDecided, onCancel });
    this.#wait(waiting, short);
    // It will lack the others, too, once it has this one: all are asked for at once.
    for (let i = short + 1; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      const held = this.pools.of(pool);
      if (held.line.size === 0 && held.isShort(amount, sequence)) this.#ask(held, amount, amount);
    }
    this.#outbox.flush();
    return waiting;
  }

  receive(message: OwnerMessage): void {
    const now = this.#now();
    switch (message.type) {
      case 'lease-answer':
        for (const answer of message.answers) this.#accept(answer, now);
        break;
      case 'lease-recall':
        for (const recall of message.recalls) this.#giveUp(recall, now);
        break;
      case 'lease-news':
        for (const name of message.pools) this.pools.get(name)?.markWet();
        break;
      case 'lease-debt':
        for (const { pool, amount } of message.debts) this.#owe(pool, amount, now);
        break;
      case 'lease-term':
        this.#until = message.until ?? Number.POSITIVE_INFINITY;
        for (const held of this.#awaited) this.#serve(held, now, false);
        break;
    }
    this.#finish();
  }

  disconnect(): void {
    this.#isConnected = false;
    this.#outbox.close();
    const now = this.#now();
    for (const held of this.pools.values()) {
      held.isAsking = false;
      this.#serve(held, now, true);
    }
    this.#finish();
  }

  tick(): void {
    const now = this.#now();
    this.#seenAt = now;
    this.ticks++;
    for (const held of this.#awaited) {
      held.collect(now);
      for (let late = held.line.first; late !== null && late.deadline <= now; late = held.line.first)
        this.#decideLate(late, held, now);
      this.#serve(held, now, false);
      if (held.line.size === 0) this.#awaited.delete(held);
    }
    for (const held of this.#contested) {
      held.collect(now);
      this.#freed(held, now);
      if (now < held.contestedUntil || held.owed > 0) continue;
      held.isContested = false;
      this.#contested.delete(held);
    }
    this.#outbox.tellSpent();
    if (now - this.#sweptAt >= sweepMs) this.#sweep(now);
    this.#finish();
  }

  close(): void {
    this.#outbox.tellSpent();
    for (const held of this.pools.values()) this.#sendBack(held, held.available);
    this.#finish();
    // The process may end before the turn does.
    this.#outbox.flushNow();
  }

  peek(pool: Pool): PoolView {
    const held = this.pools.get(pool.name);
    if (held === undefined) return untouched(pool);
    return viewOf(pool, held, this.#seenAt);
  }

  inspect(): HeldUnits[] {
    return [...this.pools.values()].map((held) => held.units());
  }

  unuse(held: HeldPool, bucket: number, amount: number): void {
    held.unuse(bucket, amount);
    if (!held.isWanted) return;
    this.#freed(held, this.#now());
    this.#finish();
  }

  spend(held: HeldPool, amount: number): void {
    held.spend(amount);
    this.#outbox.spending.add(held);
  }

  overuse(held: HeldPool, amount: number): void {
    const now = this.#now();
    held.collect(now);
    held.take(amount, now);
    if (held.available >= 0 || !this.#isConnected) return;
    const missing = -held.available;
    held.available = 0;
    held.held += missing;
    this.#outbox.overdrafts.push({ pool: held.name, amount: missing });
    this.#outbox.flush();
  }

  release(demands: readonly Demand[], found: HeldPool[]): void {
    let isFreed = false;
    for (let i = 0; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      if (!isGivenBack(pool)) continue;
      const held = this.pools.at(found, i, pool);
      held.inUse -= amount;
      held.available += amount;
      if (!held.isWanted) continue;
      isFreed = true;
      this.#freed(held, this.#now());
    }
    if (isFreed) this.#finish();
  }

  /** @returns the index of the first demand that cannot be met before those who came earlier, or -1 */
  #firstShort(demands: readonly Demand[], found: HeldPool[], sequence: number, now: number): number {
    for (let i = 0; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      const held = this.pools.at(found, i, pool);
      held.collect(now);
      if (held.isShort(amount, sequence) || (amount > 0 && this.#isLapsed(pool, now))) return i;
    }
    return -1;
  }

  /** Takes the units of demands that `#firstShort` has just found to be met. */
  #admit(demands: readonly Demand[], found: HeldPool[], now: number): Admission {
    for (let i = 0; i < demands.length; i++) {
      const held = found[i] as HeldPool;
      held.take((demands[i] as Demand).amount, now);
      if (held.runsOut) this.#askAhead(held);
    }
    return new Admission(this, demands, found, bucketOf(now));
  }

  /** Asks for more units of a pool that will be short in a moment, so that no call has to wait for them. */
  #askAhead(held: HeldPool): void {
    this.#ask(held, held.usable + 1, held.usable + 1);
    this.#outbox.flush();
  }

  /** A denial that needs nobody's word, or null. */
  #refuse(demands: readonly Demand[], sequence: number, now: number): Denial | null {
    let refused: Denial | null = null;
    for (const { pool, amount } of demands) {
      if (amount > pool.limit) return { outcome: 'denied', pool, reason: 'tooLarge', retryAfterMs: 0 };
      const held = this.pools.of(pool);
      held.collect(now);
      const isShort = held.isShort(amount, sequence) || this.#isLapsed(pool, now);
      if (!isShort || !this.#isHopeless(held, amount, now)) continue;
      const denial = held.denial(pool, now);
      if (refused === null || denial.retryAfterMs > refused.retryAfterMs) refused = denial;
    }
    return refused;
  }

  /** What is held of it must not be used now. What is spent was reserved for good. */
  #isLapsed(pool: Pool, now: number): boolean {
    return now >= this.#until && pool.kind !== 'spend';
  }

  #isHopeless(held: HeldPool, amount: number, now: number): boolean {
    return !this.#isConnected || held.isDry(amount, now) || held.line.size >= this.#maxWaiting;
  }

  /** Puts a call into the line of the pool that it lacks units of. */
  #wait(waiting: Waiting, demand: number): void {
    const held = this.pools.of((waiting.demands[demand] as Demand).pool);
    held.line.insert(waiting, demand);
    this.#awaited.add(held);
    this.#askForLine(held);
  }

  #askForLine(held: HeldPool): void {
    if (held.line.size > 0 && !held.isAsking) this.#ask(held, held.line.amount, held.line.least());
  }

  /** Asks the primary for what is missing of so many units, unless it is asked already. */
  #ask(held: HeldPool, amount: number, least: number): void {
    if (held.isAsking || !this.#isConnected) return;
    this.#outbox.asks.push(held.stateAsk(amount, least, this.#sequence));
  }

  #accept(answer: PoolAnswer, now: number): void {
    const held = this.pools.get(answer.pool);
    if (held === undefined) {
      if (answer.granted > 0) this.#outbox.returns.push({ pool: answer.pool, amount: answer.granted });
      return;
    }
    held.collect(now);
    held.accept(answer, now);
    // An answer to an earlier ask says nothing of what was asked since.
    const isEnd = answer.short && !held.isAsking;
    if (isEnd) held.markDry(answer.retryAt, now);
    this.#serve(held, now, isEnd);
  }

  #giveUp({ pool, number }: PoolRecall, now: number): void {
    const held = this.pools.get(pool);
    if (held === undefined) {
      this.#outbox.recalled.push({ pool, recall: number, amount: 0, nextAt: null, ask: null });
      return;
    }
    held.contestedUntil = now + contestedMs;
    held.isContested = true;
    this.#contested.add(held);
    held.collect(now);
    const amount = Math.max(0, held.available);
    held.giveBack(amount);
    const counted = amount > 0 && held.line.size > 0;
    const ask = counted ? held.stateAsk(held.line.amount, held.line.least(), this.#sequence) : null;
    const nextAt = held.cooling?.nextAt() ?? null;
    this.#outbox.recalled.push({ pool, recall: number, amount, nextAt, ask });
  }

  #owe(pool: string, amount: number, now: number): void {
    const held = this.pools.get(pool);
    // What it had is on its way back.
    if (held === undefined) return;
    held.owed = Math.min(held.held, held.owed + amount);
    this.#contested.add(held);
    held.collect(now);
    this.#freed(held, now);
  }

  /** Units have become available: they are owed, or for those who wait here, or elsewhere. */
  #freed(held: HeldPool, now: number): void {
    this.#sendBack(held, Math.min(held.owed, held.available));
    if (held.line.size > 0) this.#serve(held, now, false);
    if (now < held.contestedUntil && held.line.size === 0) this.#sendBack(held, held.available);
  }

  #sendBack(held: HeldPool, amount: number): void {
    if (amount <= 0 || !this.#isConnected) return;
    held.giveBack(amount);
    this.#outbox.returns.push({ pool: held.name, amount });
  }

  /** @param isEnd there is no more: who was asked for and cannot be served now is denied */
  #serve(held: HeldPool, now: number, isEnd: boolean): void {
    for (let waiting = held.line.first; waiting !== null; waiting = held.line.first) {
      const found: HeldPool[] = [];
      const short = this.#firstShort(waiting.demands, found, waiting.sequence, now);
      if (short === -1) {
        held.line.remove(waiting);
        this.#decided.add(waiting, this.#admit(waiting.demands, found, now));
        continue;
      }
      const { pool, amount } = waiting.demands[short] as Demand;
      const lacking = this.pools.of(pool);
      // The answer says nothing of those who came after the question, and may need less.
      const isAnswered = isEnd && (waiting.sequence <= held.askedThrough || !this.#isConnected);
      if (lacking === held && !isAnswered) break;
      if (lacking === held || this.#isHopeless(lacking, amount, now)) {
        this.#deny(waiting, lacking, now, short);
        continue;
      }
      held.line.remove(waiting);
      this.#wait(waiting, short);
    }
    this.#askForLine(held);
  }

  #deny(waiting: Waiting, held: HeldPool, now: number, demand = waiting.demand): void {
    waiting.line?.remove(waiting);
    this.#decided.add(waiting, held.denial((waiting.demands[demand] as Demand).pool, now));
  }

  /** A call has waited long enough: where nobody has said that there is too little, the config decides. */
  #decideLate(waiting: Waiting, held: HeldPool, now: number): void {
    const isLetIn =
      this.#isConnected &&
      held.isUnanswered(now) &&
      this.#whenUnknown() === 'open' &&
      waiting.demands.every(({ pool }) => pool.kind !== 'spend');
    if (!isLetIn) {
      this.#deny(waiting, held, now);
      return;
    }
    waiting.line?.remove(waiting);
    const found = waiting.demands.map(({ pool }) => this.pools.of(pool));
    for (const [index, { amount }] of waiting.demands.entries())
      this.overuse(found[index] as HeldPool, amount);
    this.#decided.add(waiting, new Admission(this, waiting.demands, found, bucketOf(now)));
  }

  #cancel(waiting: Waiting): void {
    const { line, decision } = waiting;
    if (decision?.outcome === 'admitted') decision.undo();
    if (line === null) return;
    line.remove(waiting);
    // Those behind it may need less.
    this.#serve(this.pools.of((waiting.demands[waiting.demand] as Demand).pool), this.#now(), false);
    this.#finish();
  }

  /** Once a second: sends back what was idle since, and forgets the pools of which nothing is left. */
  #sweep(now: number): void {
    this.#sweptAt = now;
    for (const held of this.pools.values()) {
      held.collect(now);
      const idle = held.sweep();
      if (held.line.size === 0) this.#sendBack(held, idle);
      if (held.isIdle(now)) {
        this.pools.forget(held);
        this.#contested.delete(held);
      }
    }
  }

  /** Sends what is to be sent, then tells what was decided. */
  #finish(): void {
    this.#outbox.flush();
    this.#decided.tell();
  }
}
