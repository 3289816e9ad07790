/*
 * A call under limits, step by step. A worker has a `LeaseHolder`, the primary the one `PoolOwner`.
 *
 * 1. `flow/limits/admit` turns the call's limits (`pools.ts`) into demands: a number of units of each pool.
 * 2. `take`: if this worker holds the units of all demands, the call is admitted without a message.
 * 3. `acquire`: if a pool lacks units, the call is denied immediately when it is known that no more exist (`HeldPool.denial`). If
 *    the queue of that pool is full (`maxWaiting`), it is denied as `unknown`. Otherwise the call waits in that queue, and the
 *    worker requests units from the primary (`lease-messages.ts`).
 * 4. The owner grants what it has free. If that is too little, it requests shares from other hosts (`ShareSource`), recalls idle
 *    units from its other workers, and then replies, possibly with less than requested.
 * 5. On the reply, the waiting calls are admitted or denied in order of arrival. After a second without a reply,
 *    `outage.rates` decides.
 * 6. An admitted call has an `Admission`. At its end `settle` reports what it really used, and `release` frees its slots.
 * 7. Units of a window become free again after their minute (`sliding-window.ts`). A sweep returns idle units beyond the slice
 *    to the owner.
 */

import { Admission, type Decision, type Denial, denialToReport } from './admission.js';
import { type HeldPool, HeldPools, type HeldUnits } from './held-pool.js';
import {
  type HolderMessage,
  type OwnerMessage,
  omitEmpty,
  type PoolAmount,
  type PoolAnswer,
  type PoolAsk,
  type PoolLease,
  type PoolRecall,
  type PoolRecalled,
} from './lease-messages.js';
import { type Demand, isReturnable, type Pool, type PoolView, unusedView } from './pool.js';
import { bucketMs, bucketOf } from './sliding-window.js';
import { DecidedCalls, WaitingCall } from './waiting-line.js';

/** Longest wait of a call for units. */
const mostWaitMs = 1000;
/** How long after a recall idle units are returned immediately. */
const recalledMs = 1000;
/** Ticks between sweeps of pools of which more than a slice is held. */
const sweepTicks = 10;
/** Ticks between sweeps of idle pools, and of pools of slots in use, which calls may hold for long. */
const slotTicks = 600;
/** Consecutive idle sweeps after which a pool is dropped: a quarter of an hour. Creating it again costs as much as a call. */
const mostIdleSweeps = 12;

interface LeaseHolderOptions {
  /** Returns the milliseconds of a monotonic clock that all processes of the host share. Reads the clock every time. */
  readonly now: () => number;
  /** Sends a message to the primary, in order. Must not throw or call the holder. */
  readonly send: (message: HolderMessage) => void;
  /** Runs a callback at the end of the turn of the event loop. */
  readonly defer: (run: () => void) => void;
  /**
   * What to do with a call if the primary does not reply in time, or is gone. `open` admits it beyond the limits, except for
   * budgets. `closed` denies it as `unknown`.
   */
  readonly outageRates: () => 'open' | 'closed';
  /** Most calls that wait for units of one pool. Default: 1,000. */
  readonly maxWaiting?: number;
}

/** A worker's side of all limits. Holds leased units, and admits or denies calls by them. */
export class LeaseHolder {
  readonly #now: () => number;
  readonly #maxWaiting: number;
  readonly #outageRates: () => 'open' | 'closed';
  readonly #outbox: Outbox;
  readonly #pools = new HeldPools();
  /** Pools whose units other workers lack or lacked recently, or that owe units. */
  readonly #recalled = new Set<HeldPool>();
  /** Pools with waiting calls. */
  readonly #awaited = new Set<HeldPool>();
  readonly #decided = new DecidedCalls();
  #isConnected = true;
  /** Whether more sweeps follow in this tick. */
  #isSweeping = false;
  /** Until when held units may be used. */
  #until = Number.POSITIVE_INFINITY;
  #sequence = 0;
  /** Number of ticks so far. */
  ticks = 0;
  /** The last known time. */
  #seenAt = 0;

  constructor(options: LeaseHolderOptions) {
    const { now, send, defer, outageRates, maxWaiting = 1000 } = options;
    this.#now = now;
    this.#outbox = new Outbox(send, defer);
    this.#outageRates = outageRates;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Takes the units of all demands if this worker holds them, as it does for nearly every call.
   * @param demands each pool once
   * @param now current time of the holder's clock
   * @returns null if it does not hold them; nothing was taken then, and `acquire` decides
   */
  take(demands: readonly Demand[], now: number): Admission | null {
    this.#seenAt = now;
    if (this.#firstShort(demands, ++this.#sequence, now) !== -1) return null;
    return this.#admit(demands, now);
  }

  /**
   * As `take`, but waits for units, or returns why the call is denied.
   * @param onDecided called once, later, if the result is `pending` and is not cancelled
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
    // The call will also lack the other units, so all are requested together.
    for (let i = short + 1; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      const held = this.#pools.of(pool);
      const isWaitedFor = held.negotiation !== null && held.negotiation.line.size > 0;
      if (!isWaitedFor && held.isShort(amount, sequence)) this.#ask(held, amount, amount);
    }
    this.#outbox.flush();
    return waiting;
  }

  /** Handles a message of the primary. */
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
   * Called when the primary is gone. Held units may be used up. Where other workers may hold more, `outageRates` decides; all
   * other calls are denied.
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

  /** Decides calls that have waited long enough, and returns idle units. To be called about every 100 ms. */
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
    this.#pools.beginTick(now);
    if (!this.#isSweeping) this.#sweepSome();
    this.#finish();
  }

  /** Sweeps some of the pools that are due, and the others in later turns of the event loop. */
  readonly #sweepSome = (): void => {
    const now = this.#now();
    // Whatever throws from here on, the next turn or the next tick goes on.
    this.#isSweeping = false;
    this.#isSweeping = this.#pools.sweepSome((held) => this.#sweep(held, now));
    if (this.#isSweeping) this.#outbox.defer(this.#sweepSome);
    this.#finish();
  };

  /** Returns all units that are not in use, since the worker is about to end. */
  close(): void {
    this.#outbox.tellSpent();
    const now = this.#now();
    // Slices become free when the worker ends.
    for (const held of this.#pools.values()) if (!held.isSettled(now)) this.#sendBack(held, held.available);
    this.#finish();
    // Sent now, since the process may end within this turn.
    this.#outbox.flushNow();
  }

  /** Returns what clients may be told about a limit, which may be slightly out of date. */
  peek(pool: Pool): PoolView {
    const held = this.#pools.seen(pool);
    return held === null ? unusedView(pool) : held.view(pool, this.#seenAt);
  }

  /** Lists the numbers of its pools. */
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
      if (!isReturnable(pool)) continue;
      const held = this.#pools.of(pool);
      held.inUse -= amount;
      held.available += amount;
      if (!held.isWanted) continue;
      isFreed = true;
      this.#freed(held, this.#now());
    }
    if (isFreed) this.#finish();
  }

  /** Counts units as used, whether they are available or not. */
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

  /** @returns the index of the first demand that cannot be met without overtaking earlier calls, or -1 */
  #firstShort(demands: readonly Demand[], sequence: number, now: number): number {
    for (let i = 0; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      const held = this.#pools.of(pool);
      held.collect(now);
      if (held.isShort(amount, sequence) || (amount > 0 && this.#isLapsed(pool, now))) return i;
    }
    return -1;
  }

  /** Takes the units of demands for which `#firstShort` has returned -1. */
  #admit(demands: readonly Demand[], now: number): Admission {
    for (let i = 0; i < demands.length; i++) {
      const { pool, amount } = demands[i] as Demand;
      const held = this.#pools.of(pool);
      held.take(amount, now);
      if (held.runsOut) this.#askAhead(held);
    }
    return new Admission(this, demands, bucketOf(now));
  }

  /** Requests more units of a pool that will soon lack some, so that no call has to wait. */
  #askAhead(held: HeldPool): void {
    this.#ask(held, held.usable + 1, held.usable + 1);
    this.#outbox.flush();
  }

  /** Returns a denial that is certain without the primary, or null. */
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
      // There are units, but without the primary it is unknown whether they are still valid.
      const isLapsedAlone = !isShort && !this.#isConnected;
      denied = denialToReport(denied, isLapsedAlone ? { ...denial, reason: 'unknown' } : denial);
    }
    return denied;
  }

  /** Decides a call that only the primary could decide, which is gone. */
  #isLetInAlone({ reason }: Denial, demands: readonly Demand[]): boolean {
    return !this.#isConnected && reason === 'unknown' && this.#isOpenTo(demands);
  }

  /** Whether to admit a call without a reply of the primary. Budgets never admit that way. */
  #isOpenTo(demands: readonly Demand[]): boolean {
    return this.#outageRates() === 'open' && demands.every(({ pool }) => pool.kind !== 'budget');
  }

  /** Admits a call, whatever is held. */
  #admitBeyond(demands: readonly Demand[], now: number): Admission {
    for (const { pool, amount } of demands) this.#overuse(this.#pools.of(pool), amount);
    return new Admission(this, demands, bucketOf(now));
  }

  /** Whether held units of a pool must not be used now. Spent budget was reserved for good. */
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

  /** Adds a call to the queue of the pool that lacks units. */
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

  /** Requests the missing units from the primary, unless that was done already. */
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
    // A reply to an earlier request does not cover later ones.
    const isEnd = answer.short && !held.negotiate().isAsking;
    if (isEnd) held.negotiate().markExhausted(answer.retryAt, now);
    this.#decideLine(held, now, isEnd);
  }

  /** Whether the units that a worker has of a pool differ from the slice that it would assume. */
  #noteLease({ pool: name, kind, limit, leased }: PoolLease): void {
    const pool = { name, kind, limit };
    const held = this.#pools.get(name) ?? this.#pools.add(pool, leased);
    held.slice = this.#pools.sliceOf(pool);
    // A reload may change a great many pools.
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
    // Its former units are being returned.
    if (held === undefined) return;
    held.negotiate().owed = Math.min(held.leased, held.negotiate().owed + amount);
    this.#recalled.add(held);
    held.collect(now);
    this.#freed(held, now);
  }

  /** Distributes units that have become available: to debts, to waiting calls, or back to the owner. */
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
   * Decides the waiting calls of a pool in order of arrival, as far as possible now.
   * @param isEnd no more units exist: requested calls that cannot be served now are denied
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
      // The reply does not cover calls that arrived after the request, which may need less.
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

  /** Decides a call that has waited long enough. Without a reply of the primary, the config decides. */
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
    // Later calls may need less.
    this.#decideLine(this.#pools.of((waiting.demands[waiting.demand] as Demand).pool), this.#now(), false);
    this.#finish();
  }

  /** Returns units that were idle since the last sweep. Drops a pool that has been idle for long. */
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

  /** Sends pending messages, then reports the decisions. */
  #finish(): void {
    this.#outbox.flush();
    this.#decided.notify();
  }
}

/** Collects the messages to the primary: one for everything in a turn of the event loop. */
class Outbox {
  recalled: PoolRecalled[] = [];
  overdrafts: PoolAmount[] = [];
  spent: PoolAmount[] = [];
  returns: PoolAmount[] = [];
  asks: PoolAsk[] = [];
  /** Pools with spent units that were not reported yet. */
  readonly spending = new Set<HeldPool>();
  #send: ((message: HolderMessage) => void) | null;
  readonly defer: (run: () => void) => void;
  #isDeferred = false;

  /** @param defer runs a callback at the end of the turn */
  constructor(send: (message: HolderMessage) => void, defer: (run: () => void) => void) {
    this.#send = send;
    this.defer = defer;
  }

  /** Adds what was spent since the last call. */
  tellSpent(): void {
    for (const held of this.spending) {
      const amount = held.tellSpent();
      if (amount > 0) this.spent.push({ pool: held.name, amount });
    }
    this.spending.clear();
  }

  /** Replaces a request that was not sent yet by a later one. */
  withdrawAsk(pool: string): void {
    this.asks = this.asks.filter((ask) => ask.pool !== pool);
  }

  /** Stops sending. */
  close(): void {
    this.#send = null;
  }

  /** Schedules sending, once. */
  flush(): void {
    if (this.#isDeferred || this.#isEmpty()) return;
    this.#isDeferred = true;
    this.defer(() => {
      this.#isDeferred = false;
      this.flushNow();
    });
  }

  flushNow(): void {
    if (this.#isEmpty()) return;
    const message: HolderMessage = {
      type: 'lease-news',
      recalled: omitEmpty(this.recalled),
      overdrafts: omitEmpty(this.overdrafts),
      spent: omitEmpty(this.spent),
      returns: omitEmpty(this.returns),
      asks: omitEmpty(this.asks),
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
