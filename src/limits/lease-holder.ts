/*
 * A call under limits, step by step. A worker has a `LeaseHolder`, the primary the one `PoolOwner`.
 *
 * 1. `flow/limits/admit` makes the call's limits (`pools.ts`) into demands: so many units of each pool.
 * 2. `take`: where this worker holds the units of all of them, the call is let in, without a message.
 * 3. `acquire`: where one is short, the call is denied at once if it is known that nobody has more (`HeldPool.denial`), or, as
 *    `unknown`, if the line of that pool is full (`maxWaiting`); else it waits in that line, and the primary is asked (`lease-messages.ts`).
 * 4. The owner grants what it has free; where that is too little it asks the other hosts for their shares (`ShareSource`)
 *    and recalls what its other workers have idle, and then answers, with too little where there is no more.
 * 5. With the answer the calls of the line are let in or denied, first come first served; after a second without an
 *    answer `outage.rates` decides.
 * 6. A call that is let in has an `Admission`: at its end `settle` says what it really used, and `release` frees its slots.
 * 7. Units of a window come back after their minute (`sliding-window.ts`). What is idle beyond the slice goes back to the
 *    owner with a sweep.
 */

import { Admission, type Decision, type Denial, graver } from './admission.js';
import { type HeldPool, HeldPools, type HeldUnits } from './held-pool.js';
import {
  type HolderMessage,
  type OwnerMessage,
  type PoolAmount,
  type PoolAnswer,
  type PoolAsk,
  type PoolLease,
  type PoolRecall,
  type PoolRecalled,
  someOf,
} from './lease-messages.js';
import { type Demand, isGivenBack, type Pool, type PoolView, untouched } from './pool.js';
import { bucketMs, bucketOf } from './sliding-window.js';
import { DecidedCalls, WaitingCall } from './waiting-line.js';

/** A call waits for units at most so long. */
const mostWaitMs = 1000;
/** After a recall, what becomes idle goes back at once for so long. */
const recalledMs = 1000;
/** How often the pools are swept of which more than a slice is held, in ticks. */
const sweepTicks = 10;
/** How often, in ticks, a pool of slots in use is swept, since a call may hold one for long, and any pool that is idle. */
const slotTicks = 600;
/** A pool is forgotten when it was idle at so many looks, after a quarter of an hour: to make it anew costs as much as a call. */
const mostIdleSweeps = 12;

interface LeaseHolderOptions {
  /** Milliseconds of a monotonic clock that all processes of the host share. Never a remembered value. */
  readonly now: () => number;
  /** Sends to the primary, in order. Must not throw, nor call the holder. */
  readonly send: (message: HolderMessage) => void;
  /**
   * Runs something once the present turn of the event loop is over, so that all that happens in it is one message. At
   * once unless given.
   */
  readonly defer?: (run: () => void) => void;
  /**
   * What becomes of a call of which nobody can say whether there is room for it, since the primary does not answer in
   * time or is gone: `open` lets it in, beyond the limits, but for money; `closed` denies it as `unknown`.
   */
  readonly outageRates: () => 'open' | 'closed';
  /** Calls that may wait for units of one pool. Default 1,000. */
  readonly maxWaiting?: number;
}

const runNow = (run: () => void): void => run();

/** A worker's side of all limits: it holds leased units and decides calls by them. */
export class LeaseHolder {
  readonly #now: () => number;
  readonly #maxWaiting: number;
  readonly #outageRates: () => 'open' | 'closed';
  readonly #outbox: Outbox;
  readonly #pools = new HeldPools();
  /** Those whose units other workers lack, or lacked a moment ago, or that owe some. */
  readonly #recalled = new Set<HeldPool>();
  /** Those with calls that wait. */
  readonly #awaited = new Set<HeldPool>();
  readonly #decided = new DecidedCalls();
  #isConnected = true;
  /** What is held may be used until then. */
  #until = Number.POSITIVE_INFINITY;
  #sequence = 0;
  /** How often it has ticked. */
  ticks = 0;
  /** When it last looked at its clock, or was told the time. */
  #seenAt = 0;

  constructor(options: LeaseHolderOptions) {
    const { now, send, defer = runNow, outageRates, maxWaiting = 1000 } = options;
    this.#now = now;
    this.#outbox = new Outbox(send, defer);
    this.#outageRates = outageRates;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Takes the units of all demands where this worker has them, as it has for nearly every call.
   * @param demands each pool once
   * @param now by the holder's clock, looked at just now
   * @returns null where it has not, and then nothing was taken: `acquire` tells more
   */
  take(demands: readonly Demand[], now: number): Admission | null {
    this.#seenAt = now;
    if (this.#firstShort(demands, ++this.#sequence, now) !== -1) return null;
    return this.#admit(demands, now);
  }

  /**
   * As `take`, and waits for units, or says why not.
   * @param onDecided called once, later, when the result is `pending` and is not cancelled
   */
  acquire(demands: readonly Demand[], onDecided: (decision: Decision) => void): Decision | WaitingCall {
    const now = this.#now();
    this.#seenAt = now;
    const sequence = ++this.#sequence;
    const short = this.#firstShort(demands, sequence, now);
    if (short === -1) return this.#admit(demands, now);
    const denial = this.#certainDenial(demands, sequence, now);
    if (denial !== null)
      return this.#isLetInAlone(denial, demands) ? this.#admitBeyond(demands, now) : denial;
    const onCancel = (cancelled: WaitingCall) => this.#cancel(cancelled);
    const waiting = new WaitingCall({
      sequence,
      deadline: now + mostWaitMs,
      demands,
      onDecided,
      onCancel,
    });
    this.#wait(waiting, short);
    // It will lack the others, too, once it has this one: all are asked for at once.
    for (let i = short + 1; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      const held = this.#pools.of(pool);
      const isWaitedFor = held.negotiation !== null && held.negotiation.line.size > 0;
      if (!isWaitedFor && held.isShort(amount, sequence)) this.#ask(held, amount, amount);
    }
    this.#outbox.flush();
    return waiting;
  }

  /** Takes the primary's message. */
  receive({ slices, leases, until, answers, recalls, debts, refilled }: OwnerMessage): void {
    const now = this.#now();
    if (slices !== undefined) this.#pools.setSlices(slices);
    for (const pool of leases ?? []) this.#noteLease(pool);
    if (until !== undefined) {
      this.#until = until ?? Number.POSITIVE_INFINITY;
      for (const held of this.#awaited) this.#decideLine(held, now, false);
    }
    for (const answer of answers ?? []) this.#accept(answer, now);
    for (const recall of recalls ?? []) this.#giveUp(recall, now);
    for (const { pool, amount } of debts ?? []) this.#owe(pool, amount, now);
    for (const name of refilled ?? []) this.#pools.get(name)?.negotiation?.markRefilled();
    this.#finish();
  }

  /**
   * The primary is gone for good: what is held may be used up. Where other workers may have more, `outageRates` decides,
   * and all else is denied.
   */
  disconnect(): void {
    this.#isConnected = false;
    this.#outbox.close();
    const now = this.#now();
    for (const held of this.#awaited) {
      held.negotiate().isAsking = false;
      this.#decideLine(held, now, true);
    }
    this.#finish();
  }

  /** Decides on calls that have waited long enough, and sends idle units back. To be called about every 100 ms. */
  tick(): void {
    const now = this.#now();
    this.#seenAt = now;
    this.ticks++;
    for (const held of this.#awaited) {
      const { line } = held.negotiate();
      held.collect(now);
      for (let late = line.first; late !== null && late.deadline <= now; late = line.first)
        this.#decideLate(late, held, now);
      this.#decideLine(held, now, false);
      if (line.size === 0) this.#awaited.delete(held);
    }
    for (const held of this.#recalled) {
      held.collect(now);
      this.#freed(held, now);
      if (now < held.negotiate().recalledUntil || held.negotiate().owed > 0) continue;
      held.negotiate().isRecalled = false;
      this.#recalled.delete(held);
    }
    this.#outbox.tellSpent();
    for (const held of this.#pools.nextSweeps(now)) this.#sweep(held, now);
    this.#finish();
  }

  /** Sends back all that is not in use: the worker is about to end. */
  close(): void {
    this.#outbox.tellSpent();
    const now = this.#now();
    // With its end the slices are free by themselves.
    for (const held of this.#pools.values()) if (!held.isSettled(now)) this.#sendBack(held, held.available);
    this.#finish();
    // The process may end before the turn does.
    this.#outbox.flushNow();
  }

  /** What a caller may be told of a limit, as it was a moment ago. */
  peek(pool: Pool): PoolView {
    const held = this.#pools.seen(pool);
    return held === null ? untouched(pool) : held.view(pool, this.#seenAt);
  }

  /** The numbers of its pools, one by one. */
  *units(): Generator<HeldUnits, void, undefined> {
    const now = this.#now();
    for (const held of this.#pools.values()) yield held.units(now);
  }

  /** Of an admission that holds units of this holder, as are the next two. */
  putRight(pool: Pool, bucket: number, spare: number): void {
    const held = this.#pools.of(pool);
    if (spare < 0) this.#overuse(held, -spare);
    if (spare <= 0) return;
    held.unuse(bucket, spare);
    if (!held.isWanted) return;
    this.#freed(held, this.#now());
    this.#finish();
  }

  spend(pool: Pool, amount: number): void {
    const held = this.#pools.of(pool);
    held.spend(amount);
    this.#outbox.spending.add(held);
  }

  release(demands: readonly Demand[]): void {
    let isFreed = false;
    for (let i = 0; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      if (!isGivenBack(pool)) continue;
      const held = this.#pools.of(pool);
      held.inUse -= amount;
      held.available += amount;
      if (!held.isWanted) continue;
      isFreed = true;
      this.#freed(held, this.#now());
    }
    if (isFreed) this.#finish();
  }

  /** So much is used, whether there is as much or not. */
  #overuse(held: HeldPool, amount: number): void {
    const now = this.#now();
    held.collect(now);
    held.take(amount, now);
    if (held.available >= 0 || !this.#isConnected) return;
    const missing = -held.available;
    held.available = 0;
    held.leased += missing;
    this.#outbox.overdrafts.push({ pool: held.name, amount: missing });
    this.#outbox.flush();
  }

  /** @returns the index of the first demand that cannot be met before those who came earlier, or -1 */
  #firstShort(demands: readonly Demand[], sequence: number, now: number): number {
    for (let i = 0; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      const held = this.#pools.of(pool);
      held.collect(now);
      if (held.isShort(amount, sequence) || (amount > 0 && this.#isLapsed(pool, now))) return i;
    }
    return -1;
  }

  /** Takes the units of demands that `#firstShort` has just found to be met. */
  #admit(demands: readonly Demand[], now: number): Admission {
    for (let i = 0; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      const held = this.#pools.of(pool);
      held.take(amount, now);
      if (held.runsOut) this.#askAhead(held);
    }
    return new Admission(this, demands, bucketOf(now));
  }

  /** Asks for more units of a pool that will be short soon, so that no call has to wait for them. */
  #askAhead(held: HeldPool): void {
    this.#ask(held, held.usable + 1, held.usable + 1);
    this.#outbox.flush();
  }

  /** A denial that needs nobody's word, or null. */
  #certainDenial(demands: readonly Demand[], sequence: number, now: number): Denial | null {
    let denied: Denial | null = null;
    for (const demand of demands) {
      const { pool, amount } = demand;
      const held = this.#pools.of(pool);
      held.collect(now);
      const isShort = held.isShort(amount, sequence);
      if (!isShort && (amount === 0 || !this.#isLapsed(pool, now))) continue;
      if (!this.#needNotAsk(held, amount, now)) continue;
      const denial = held.denial(demand, now, !this.#isConnected);
      // There are units, and nobody is left who could say whether they still count.
      const isLapsedAlone = !isShort && !this.#isConnected;
      denied = graver(denied, isLapsedAlone ? { ...denial, reason: 'unknown' } : denial);
    }
    return denied;
  }

  /** The primary is gone, which alone could say whether there is room for a call. */
  #isLetInAlone({ reason }: Denial, demands: readonly Demand[]): boolean {
    return !this.#isConnected && reason === 'unknown' && this.#isOpenTo(demands);
  }

  /** Whether a call is let in where nobody says that there is too little. Money is never given so. */
  #isOpenTo(demands: readonly Demand[]): boolean {
    return this.#outageRates() === 'open' && demands.every(({ pool }) => pool.kind !== 'budget');
  }

  /** Lets a call in, whatever is held. */
  #admitBeyond(demands: readonly Demand[], now: number): Admission {
    for (const { pool, amount } of demands) this.#overuse(this.#pools.of(pool), amount);
    return new Admission(this, demands, bucketOf(now));
  }

  /** What is held of it must not be used now. What is spent was reserved for good. */
  #isLapsed(pool: Pool, now: number): boolean {
    return now >= this.#until && pool.kind !== 'budget';
  }

  #needNotAsk(held: HeldPool, amount: number, now: number): boolean {
    return (
      !this.#isConnected ||
      held.isExhausted(amount, now) ||
      (held.negotiation !== null && held.negotiation.line.size >= this.#maxWaiting)
    );
  }

  /** Puts a call into the line of the pool that it lacks units of. */
  #wait(waiting: WaitingCall, demand: number): void {
    const held = this.#pools.of((waiting.demands[demand] as Demand).pool);
    held.negotiate().line.insert(waiting, demand);
    this.#awaited.add(held);
    this.#askForLine(held);
  }

  #askForLine(held: HeldPool): void {
    const { line, isAsking } = held.negotiate();
    if (line.size > 0 && !isAsking) this.#ask(held, line.amount, line.least());
  }

  /** Asks the primary for what is missing of so many units, unless it is asked already. */
  #ask(held: HeldPool, amount: number, least: number): void {
    if (held.negotiate().isAsking || !this.#isConnected) return;
    this.#outbox.asks.push(held.stateAsk(amount, least, this.#sequence));
    this.#pools.sweepIn(held, sweepTicks);
  }

  #accept(answer: PoolAnswer, now: number): void {
    const held = this.#pools.get(answer.pool);
    if (held === undefined) {
      if (answer.granted > 0) this.#outbox.returns.push({ pool: answer.pool, amount: answer.granted });
      return;
    }
    held.collect(now);
    held.accept(answer);
    if (answer.number === 0) this.#pools.sweepAfter(held, sweepTicks);
    else this.#pools.sweepIn(held, sweepTicks);
    // An answer to an earlier ask says nothing of what was asked since.
    const isEnd = answer.short && !held.negotiate().isAsking;
    if (isEnd) held.negotiate().markExhausted(answer.retryAt, now);
    this.#decideLine(held, now, isEnd);
  }

  /** It has other units of a pool than the slice that it would take for granted. */
  #noteLease({ pool: name, kind, limit, leased }: PoolLease): void {
    const pool = { name, kind, limit };
    const held = this.#pools.get(name) ?? this.#pools.add(pool, leased);
    held.slice = this.#pools.sliceOf(pool);
    // A reload may tell of very many at once.
    this.#pools.sweepAfter(held, sweepTicks);
  }

  #giveUp({ pool, kind, limit, number }: PoolRecall, now: number): void {
    const held = this.#pools.of({ name: pool, kind, limit });
    const negotiation = held.negotiate();
    negotiation.recalledUntil = now + recalledMs;
    negotiation.isRecalled = true;
    this.#recalled.add(held);
    this.#pools.sweepIn(held, sweepTicks);
    held.collect(now);
    const amount = Math.max(0, held.available);
    held.giveBack(amount);
    const counted = amount > 0 && negotiation.line.size > 0;
    const ask = counted
      ? held.stateAsk(negotiation.line.amount, negotiation.line.least(), this.#sequence)
      : null;
    if (ask !== null) this.#outbox.withdrawAsk(pool);
    const nextAt = held.window?.nextAt() ?? null;
    this.#outbox.recalled.push({ pool, recall: number, amount, nextAt, ask });
  }

  #owe(pool: string, amount: number, now: number): void {
    const held = this.#pools.get(pool);
    // What it had is on its way back.
    if (held === undefined) return;
    held.negotiate().owed = Math.min(held.leased, held.negotiate().owed + amount);
    this.#recalled.add(held);
    held.collect(now);
    this.#freed(held, now);
  }

  /** Units have become available: they are owed, or for those who wait here, or elsewhere. */
  #freed(held: HeldPool, now: number): void {
    const negotiation = held.negotiate();
    this.#sendBack(held, Math.min(negotiation.owed, held.available));
    if (negotiation.line.size > 0) this.#decideLine(held, now, false);
    if (now < negotiation.recalledUntil && negotiation.line.size === 0) this.#sendBack(held, held.available);
  }

  #sendBack(held: HeldPool, amount: number): void {
    if (amount <= 0 || !this.#isConnected) return;
    held.giveBack(amount);
    this.#outbox.returns.push({ pool: held.name, amount });
  }

  /**
   * Decides the calls that wait in the line of a pool, first come first served, as far as they can be decided now.
   * @param isEnd there is no more: who was asked for and cannot be served now is denied
   */
  #decideLine(held: HeldPool, now: number, isEnd: boolean): void {
    const { line, through } = held.negotiate();
    for (let waiting = line.first; waiting !== null; waiting = line.first) {
      const short = this.#firstShort(waiting.demands, waiting.sequence, now);
      if (short === -1) {
        line.remove(waiting);
        this.#decided.add(waiting, this.#admit(waiting.demands, now));
        continue;
      }
      const { pool, amount } = waiting.demands[short] as Demand;
      const lacking = this.#pools.of(pool);
      // The answer says nothing of those who came after the question, and may need less.
      const isAnswered = isEnd && (waiting.sequence <= through || !this.#isConnected);
      if (lacking === held && !isAnswered) break;
      if (lacking === held || this.#needNotAsk(lacking, amount, now)) {
        this.#deny(waiting, lacking, now, short);
        continue;
      }
      line.remove(waiting);
      this.#wait(waiting, short);
    }
    this.#askForLine(held);
  }

  #deny(waiting: WaitingCall, held: HeldPool, now: number, demand = waiting.demand): void {
    waiting.line?.remove(waiting);
    const { demands, sequence } = waiting;
    const isAlone = !this.#isConnected;
    const denial =
      (isAlone ? this.#certainDenial(demands, sequence, now) : null) ??
      held.denial(demands[demand] as Demand, now, isAlone);
    const isLetIn = this.#isLetInAlone(denial, demands);
    this.#decided.add(waiting, isLetIn ? this.#admitBeyond(demands, now) : denial);
  }

  /** A call has waited long enough: where nobody has said that there is too little, the config decides. */
  #decideLate(waiting: WaitingCall, held: HeldPool, now: number): void {
    const { amount } = waiting.demands[waiting.demand] as Demand;
    if (
      !(this.#isConnected && held.negotiate().isUnanswered(amount, now) && this.#isOpenTo(waiting.demands))
    ) {
      this.#deny(waiting, held, now);
      return;
    }
    waiting.line?.remove(waiting);
    this.#decided.add(waiting, this.#admitBeyond(waiting.demands, now));
  }

  #cancel(waiting: WaitingCall): void {
    const { line, decision } = waiting;
    if (decision?.outcome === 'admitted') decision.undo();
    if (line === null) return;
    line.remove(waiting);
    // Those behind it may need less.
    this.#decideLine(this.#pools.of((waiting.demands[waiting.demand] as Demand).pool), this.#now(), false);
    this.#finish();
  }

  /** Sends back what was idle of a pool since it was last swept, and forgets it when nothing has been left of it for long. */
  #sweep(held: HeldPool, now: number): void {
    held.collect(now);
    const idle = held.sweep();
    if (held.negotiation === null || held.negotiation.line.size === 0) this.#sendBack(held, idle);
    if (held.isIdle(now)) {
      held.negotiation = null;
      this.#recalled.delete(held);
      if (held.idleSweeps++ < mostIdleSweeps) this.#pools.sweepAfter(held, slotTicks);
      else this.#pools.forget(held);
      return;
    }
    held.idleSweeps = 0;
    if (!held.isSettled(now)) {
      this.#pools.sweepIn(held, sweepTicks);
      return;
    }
    held.negotiation = null;
    const lastAt = held.window?.lastAt() ?? null;
    const ticks = lastAt === null ? slotTicks : Math.ceil((lastAt - now) / bucketMs) + 1;
    this.#pools.sweepAfter(held, Math.max(sweepTicks, ticks));
  }

  /** Sends what is to be sent, then tells what was decided. */
  #finish(): void {
    this.#outbox.flush();
    this.#decided.tell();
  }
}

/** What a worker is about to tell the primary: one message for everything that happens in a turn of the event loop. */
class Outbox {
  recalled: PoolRecalled[] = [];
  overdrafts: PoolAmount[] = [];
  spent: PoolAmount[] = [];
  returns: PoolAmount[] = [];
  asks: PoolAsk[] = [];
  /** Pools of which units were spent since that was last told. */
  readonly spending = new Set<HeldPool>();
  #send: ((message: HolderMessage) => void) | null;
  readonly #defer: (run: () => void) => void;
  #isDeferred = false;

  /** @param defer runs something when all has happened that happens at once */
  constructor(send: (message: HolderMessage) => void, defer: (run: () => void) => void) {
    this.#send = send;
    this.#defer = defer;
  }

  /** Notes what was spent since this was last called. */
  tellSpent(): void {
    for (const held of this.spending) {
      const amount = held.tellSpent();
      if (amount > 0) this.spent.push({ pool: held.name, amount });
    }
    this.spending.clear();
  }

  /** An ask that is not sent yet has a later one in its place, which the primary would hear before it. */
  withdrawAsk(pool: string): void {
    this.asks = this.asks.filter((ask) => ask.pool !== pool);
  }

  /** Nothing is sent from now on. */
  close(): void {
    this.#send = null;
  }

  /** Has everything sent that was noted, once. */
  flush(): void {
    if (this.#isDeferred || this.#isEmpty()) return;
    this.#isDeferred = true;
    this.#defer(() => {
      this.#isDeferred = false;
      this.flushNow();
    });
  }

  flushNow(): void {
    if (this.#isEmpty()) return;
    const message: HolderMessage = {
      type: 'lease-news',
      recalled: someOf(this.recalled),
      overdrafts: someOf(this.overdrafts),
      spent: someOf(this.spent),
      returns: someOf(this.returns),
      asks: someOf(this.asks),
    };
    this.recalled = [];
    this.overdrafts = [];
    this.spent = [];
    this.returns = [];
    this.asks = [];
    this.#send?.(message);
  }

  #isEmpty(): boolean {
    const { recalled, overdrafts, spent, returns, asks } = this;
    return recalled.length + overdrafts.length + spent.length + returns.length + asks.length === 0;
  }
}
