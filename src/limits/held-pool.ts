import { WideMap } from '../wire/wide-map.js';
import type { Denial } from './admission.js';
import type { PoolAnswer, PoolAsk, Slices } from './lease-messages.js';
import { type Demand, type Pool, type PoolView, sliceOf, unusedView, windowMsOf } from './pool.js';
import { SlidingWindow } from './sliding-window.js';
import { WaitingLine } from './waiting-line.js';

/** `retry-after` for clients if it is unknown when there will be units. */
const unknownRetryMs = 1000;
/** Longest time for which a pool counts as exhausted without a new request to the primary. */
const longestExhaustedMs = 1000;
/** Denials further apart than this are unrelated. */
const denialsApartMs = 1000;
/** Wait before the next request after the second denial in a row. Each further denial doubles it. */
const firstDenialWaitMs = 10;
/** Longest such wait after the primary has reported new units. */
const waitAfterRefillMs = 20;
/**
 * A worker with at least this many calls since the last sweep is busy. It requests more units when its own last for
 * less than `askAheadSeconds`.
 */
const busyCalls = 8;
const askAheadSeconds = 0.25;
/** Most ticks until the next sweep of a pool. A power of two. */
const mostTicks = 1024;
/**
 * Sweeps of pools that hold no more than their slice are spread over this many ticks, with 64 pools at each. Pools that
 * were created one after the other are neighbours in memory.
 */
const spreadTicks = 400;
const neighbours = 64;
/** Most pools swept in one turn of the event loop, which takes about half a millisecond. */
const mostSwept = 256;

/** The numbers of one pool at a worker. The sum of `available`, `inUse`, `spent` and `inWindow` is always `leased`. */
export interface HeldUnits {
  readonly name: string;
  readonly available: number;
  readonly inUse: number;
  readonly spent: number;
  readonly inWindow: number;
  readonly leased: number;
  /** Number of calls that wait for units of this pool. */
  readonly waiting: number;
  /** Whether it can be forgotten without losing anything. */
  readonly isIdle: boolean;
}

/**
 * What one worker was leased of a pool. The sum of `available`, `inUse`, `spent` and the units in the window is always
 * `leased`. Of most pools a worker only ever has its slice, so the state of a negotiation is a separate object.
 */
export class HeldPool {
  readonly name: string;
  /** Null after `forget`. */
  home: HeldPools | null;
  /** Used units that become free again with time. Null for kinds without a window. */
  readonly window: SlidingWindow | null;
  /** What the worker has of the pool without a request: see `sliceOf`. */
  slice: number;
  /** Units that may be used now. Negative only if more was used than the primary could be told of. */
  available = 0;
  /** Units in use that do not become free with time. */
  inUse = 0;
  /** Units that messages of the primary have leased to this worker. */
  leased = 0;
  /** The tick of the next sweep. */
  sweepAt = -1;
  /** Number of consecutive sweeps that found the pool idle. */
  idleSweeps = 0;
  /** State of requests for more than the slice, or of holding more or less than that. Null if there is none. */
  negotiation: Negotiation | null = null;

  constructor(pool: Pool, home: HeldPools, slice: number) {
    this.name = pool.name;
    this.home = home;
    this.slice = slice;
    const windowMs = windowMsOf[pool.kind];
    this.window = windowMs === null ? null : new SlidingWindow(windowMs);
  }

  /** Returns the negotiation. Begins one if there is none. */
  negotiate(): Negotiation {
    this.negotiation ??= new Negotiation(this.available);
    return this.negotiation;
  }

  /** Whether exactly the slice is leased, and nothing is pending with the primary. */
  isSettled(now: number): boolean {
    return this.leased === this.slice && (this.negotiation === null || this.negotiation.isOver(now));
  }

  /** Whether it can be forgotten without losing anything. */
  isIdle(now: number): boolean {
    return this.available === this.slice && this.isSettled(now);
  }

  /** Units that calls may take. */
  get usable(): number {
    return this.negotiation === null ? this.available : this.available - this.negotiation.owed;
  }

  /** Whether units that become free are needed by others: waiting calls here, or other workers. */
  get isWanted(): boolean {
    const { negotiation } = this;
    return (
      negotiation !== null && (negotiation.line.size > 0 || negotiation.owed > 0 || negotiation.isRecalled)
    );
  }

  /** Whether a call has to wait: there are too few units, or earlier calls wait for them. */
  isShort(amount: number, sequence: number): boolean {
    if (amount === 0) return false;
    const { negotiation } = this;
    if (negotiation === null) return this.available < amount;
    const { first } = negotiation.line;
    return this.available - negotiation.owed < amount || (first !== null && first.sequence < sequence);
  }

  /** Whether the primary has recently denied such an amount, so that it is known not to have it. */
  isExhausted(amount: number, now: number): boolean {
    return this.negotiation?.isExhausted(amount, now) ?? false;
  }

  /** Makes units available whose window has passed. */
  collect(now: number): void {
    if (this.window !== null) this.available += this.window.collect(now);
  }

  take(amount: number, now: number): void {
    this.available -= amount;
    this.negotiation?.noteTaken(amount, this.available);
    if (this.window === null) this.inUse += amount;
    else this.window.add(now, amount, this.leased);
  }

  /** Removes units that are returned to the primary. */
  giveBack(amount: number): void {
    this.available -= amount;
    this.leased -= amount;
    this.negotiation?.noteBack(amount, this.available);
  }

  /**
   * Whether to request more units before a call lacks some. True if half of the slice is used. In a negotiation, true
   * if the units will soon run out at the current rate and there are many elsewhere.
   */
  get runsOut(): boolean {
    const { negotiation } = this;
    if (negotiation === null) return this.available * 2 < this.slice;
    if (negotiation.calls < busyCalls || negotiation.isAsking || this.window === null) return false;
    const perSecond = Math.max(negotiation.taken, negotiation.takenBefore);
    if (this.available >= perSecond * askAheadSeconds) return false;
    return negotiation.freeElsewhere !== null && negotiation.freeElsewhere >= perSecond;
  }

  /** Marks units in use as used up for good. */
  spend(amount: number): void {
    this.inUse -= amount;
    this.negotiate().spent += amount;
  }

  /** Returns what was spent since the last call, which then no longer counts as leased. */
  tellSpent(): number {
    const { spent } = this.negotiate();
    this.negotiate().spent = 0;
    this.leased -= spent;
    return spent;
  }

  /**
   * Makes units in use available again, since they were not needed.
   * @param bucket when they were taken: a bucket of `SlidingWindow`
   */
  unuse(bucket: number, amount: number): void {
    if (this.window !== null) {
      // If the bucket has expired, its units are available already.
      this.available += this.window.remove(bucket, amount);
      return;
    }
    this.inUse -= amount;
    this.available += amount;
  }

  /**
   * Makes the denial for a call that lacks units.
   * @param isAlone whether the primary is gone, so that it cannot say whether there is more
   */
  denial(demand: Demand, now: number, isAlone: boolean): Denial {
    const { pool, amount } = demand;
    const isUnknown = isAlone
      ? !this.#isAllKnown(demand, now)
      : (this.negotiation?.isUndecided(amount, now) ?? false);
    const reason = isUnknown ? 'unknown' : 'exhausted';
    const isOver = pool.kind === 'budget' && !this.#mayBeGivenBack(amount);
    return { outcome: 'denied', pool, reason, retryAfterMs: isOver ? null : this.retryAfterMs(amount, now) };
  }

  /** Whether the budget would suffice if all calls in flight cost nothing. */
  #mayBeGivenBack(amount: number): boolean {
    const { available, inUse, negotiation } = this;
    const elsewhere =
      negotiation === null ? 0 : negotiation.inUseElsewhere + (negotiation.freeElsewhere ?? 0);
    return available + inUse + elsewhere >= amount;
  }

  /** Whether no other worker can have units for the demand. */
  #isAllKnown({ pool, amount }: Demand, now: number): boolean {
    return this.leased >= pool.limit || this.isExhausted(amount, now);
  }

  /** Returns the milliseconds until that many units may be available. */
  retryAfterMs(amount: number, now: number): number {
    const missing = amount - this.available - (this.negotiation?.freeElsewhere ?? 0);
    const own = this.window?.backAt(missing) ?? Number.POSITIVE_INFINITY;
    const at = Math.min(own, this.negotiation?.retryAt(now) ?? Number.POSITIVE_INFINITY);
    return at === Number.POSITIVE_INFINITY ? unknownRetryMs : Math.max(1, Math.ceil(at - now));
  }

  /**
   * Returns what a caller may be told about the pool.
   * @param pool as in the current config
   */
  view(pool: Pool, now: number): PoolView {
    const { limit } = pool;
    this.collect(now);
    const used = this.inUse + (this.window?.total ?? 0);
    const freeElsewhere = this.negotiation?.freeElsewhere ?? null;
    const known = freeElsewhere === null ? limit : this.available + freeElsewhere;
    const remaining = Math.max(0, Math.min(known, limit - used));
    if (remaining >= limit) return unusedView(pool);
    const lastAt = this.window?.lastAt() ?? null;
    const resetMs = lastAt === null ? this.retryAfterMs(1, now) : Math.max(1, Math.ceil(lastAt - now));
    return { limit, remaining, resetMs };
  }

  /** Returns the current numbers. */
  units(now: number): HeldUnits {
    const { name, available, inUse, window, leased, negotiation } = this;
    const inWindow = window?.total ?? 0;
    return {
      name,
      available,
      inUse,
      spent: negotiation?.spent ?? 0,
      inWindow,
      leased,
      waiting: negotiation?.line.size ?? 0,
      isIdle: this.isIdle(now),
    };
  }

  /**
   * Ends a sweep.
   * @returns how many units beyond the slice were idle since the last sweep. In a window, those that were used in that
   * time are subtracted
   */
  sweep(): number {
    if (this.negotiation === null) {
      // The slice may have become smaller. From now on a negotiation records what is idle.
      if (this.leased > this.slice) this.negotiation = new Negotiation(this.available);
      return 0;
    }
    const { taken, idle: least } = this.negotiation;
    const idle = Math.min(least, this.available) - (this.window === null ? 0 : taken);
    this.negotiation.endSweep(this.available);
    return Math.max(0, Math.min(idle, this.leased - this.slice));
  }

  /**
   * Makes a request for what is missing of an amount. It replaces a pending request.
   * @param least the smallest useful amount
   * @param sequence of the worker's last call
   */
  stateAsk(amount: number, least: number, sequence: number): PoolAsk {
    const { usable } = this;
    const negotiation = this.negotiate();
    negotiation.begin(least, sequence);
    const need = Math.max(1, amount - usable);
    return {
      pool: this.name,
      number: negotiation.number,
      need,
      least: Math.max(1, least - usable),
      want: need + Math.max(negotiation.taken, negotiation.takenBefore, this.slice),
    };
  }

  /** Adds what the primary has granted. */
  accept(answer: PoolAnswer): void {
    this.available += answer.granted;
    this.leased += answer.granted;
    this.negotiate().hear(answer);
  }
}

/**
 * State of the exchange between a worker and the primary about a pool beyond the slice, and the calls that wait for it.
 */
class Negotiation {
  /** Calls that lack units of this pool. */
  readonly line = new WaitingLine();
  /** Units to return before any may be used. */
  owed = 0;
  /** Whether other workers lack units. Until `recalledUntil`, units that become idle are returned immediately. */
  isRecalled = false;
  recalledUntil = 0;
  /** Units used since the last sweep, and the number of calls that used them. */
  taken = 0;
  calls = 0;
  /** Units used between the last two sweeps. */
  takenBefore = 0;
  /** Fewest units that were available since the last sweep, which is what was idle all the time. */
  idle: number;
  /** Units that are used up for good but not reported to the primary. */
  spent = 0;
  /** Number of the last request, and whether its answer is pending. */
  number = 0;
  isAsking = false;
  /** Sequence of the last call that the last request covers. */
  through = 0;
  /** Whether the primary did not know, at its last answer, if more units exist. */
  isCutOff = false;
  /** Units that no worker had at the primary's last answer. Null before the first. */
  freeElsewhere: number | null = null;
  /** Units that calls at other workers held at the primary's last answer. 0 unless it denied units of a budget. */
  inUseElsewhere = 0;
  /** Until when the pool is known to have too few units for what was denied last. */
  #exhaustedUntil = Number.NEGATIVE_INFINITY;
  /** The smallest useful amount of the last request, and of the last denied one. A smaller call may still succeed. */
  #least = 0;
  #deniedFrom = 0;
  #retryAt = Number.NEGATIVE_INFINITY;
  #deniedAt = Number.NEGATIVE_INFINITY;
  #denials = 0;

  /** @param available units at this moment */
  constructor(available: number) {
    this.idle = available;
  }

  /**
   * Records that a call has taken units.
   * @param available what is left
   */
  noteTaken(amount: number, available: number): void {
    this.taken += amount;
    this.calls++;
    if (available < this.idle) this.idle = available;
  }

  /**
   * Records that units are returned to the primary.
   * @param available what is left
   */
  noteBack(amount: number, available: number): void {
    this.owed = Math.max(0, this.owed - amount);
    if (available < this.idle) this.idle = available;
  }

  endSweep(available: number): void {
    this.idle = available;
    this.takenBefore = this.taken;
    this.taken = 0;
    this.calls = 0;
  }

  /** Whether its state is no longer needed. */
  isOver(now: number): boolean {
    return (
      this.spent === 0 &&
      this.owed === 0 &&
      this.line.size === 0 &&
      !this.isAsking &&
      !this.isRecalled &&
      now >= this.#exhaustedUntil &&
      now - this.#deniedAt > denialsApartMs
    );
  }

  isExhausted(amount: number, now: number): boolean {
    return now < this.#exhaustedUntil && amount >= this.#deniedFrom;
  }

  /** Whether it is unknown if more units exist, since an answer is pending or the store cannot be reached. */
  isUndecided(amount: number, now: number): boolean {
    return this.isCutOff || this.isUnanswered(amount, now);
  }

  /** Whether an answer is pending that decides on this amount. Until then the amount cannot be denied for certain. */
  isUnanswered(amount: number, now: number): boolean {
    return this.isAsking && !this.isExhausted(amount, now);
  }

  /** Returns when there may be units elsewhere, or infinity if that is unknown. */
  retryAt(now: number): number {
    return this.#retryAt > now ? this.#retryAt : Number.POSITIVE_INFINITY;
  }

  /** Begins a request. */
  begin(least: number, sequence: number): void {
    this.number++;
    this.isAsking = true;
    this.through = sequence;
    this.#least = least;
  }

  hear({ number, free, inUseElsewhere, isCutOff }: PoolAnswer): void {
    this.freeElsewhere = free;
    this.inUseElsewhere = inUseElsewhere;
    this.isCutOff = isCutOff;
    if (number === this.number) this.isAsking = false;
  }

  /**
   * Records that the primary has no more. A single denial may be chance, so it alone causes no wait before the next
   * request. The second in a row does, and each further one doubles the wait. Requests also wait until `retryAt`. No
   * wait exceeds `longestExhaustedMs`.
   * @param retryAt when other workers will have units, or null if that is unknown
   */
  markExhausted(retryAt: number | null, now: number): void {
    this.#denials = now - this.#deniedAt > denialsApartMs ? 1 : Math.min(this.#denials + 1, 16);
    this.#deniedAt = now;
    this.#deniedFrom = this.#least;
    this.#retryAt = retryAt ?? Number.NEGATIVE_INFINITY;
    const until = Math.max(now + this.#denialWaitMs(), retryAt ?? now);
    this.#exhaustedUntil = Math.min(now + longestExhaustedMs, until);
  }

  /** Records that there are units again. They may be requested, but not by one denied call after the other. */
  markRefilled(): void {
    const waitMs = Math.min(this.#denialWaitMs(), waitAfterRefillMs);
    this.#exhaustedUntil = Math.min(this.#exhaustedUntil, this.#deniedAt + waitMs);
    this.#retryAt = Number.NEGATIVE_INFINITY;
  }

  #denialWaitMs(): number {
    return this.#denials <= 1 ? 0 : firstDenialWaitMs * 2 ** (this.#denials - 2);
  }
}

/** The pools of which a worker has used units recently, or has units other than its slice. */
export class HeldPools {
  readonly #byName = new WideMap<HeldPool>();
  /**
   * Pools by the tick of their sweep, modulo the length. An entry is ignored if the pool's `sweepAt` is another tick by
   * then.
   */
  readonly #sweeps: HeldPool[][] = Array.from({ length: mostTicks }, () => []);
  /** Ticks whose sweeps are not done yet, oldest first, with the index of the next pool. */
  readonly #due: { readonly tick: number; readonly pools: readonly HeldPool[]; next: number }[] = [];
  #tick = 0;
  #spread = 0;
  #slices: Slices = { sliceDivisor: 0, usedUntil: null };

  /** To be called before any pool is used. */
  setSlices(slices: Slices): void {
    this.#slices = slices;
  }

  get(name: string): HeldPool | undefined {
    return this.#byName.get(name);
  }

  /** Returns the pool of that name. Creates it with its slice if it does not exist. */
  of(pool: Pool): HeldPool {
    return this.seen(pool) ?? this.#note(pool, this.add(pool, this.sliceOf(pool)));
  }

  /** Returns the pool of that name, or null if it does not exist. */
  seen(pool: Pool): HeldPool | null {
    const { held } = pool;
    if (held instanceof HeldPool && held.home === this && held.name === pool.name) return held;
    const known = this.#byName.get(pool.name);
    return known === undefined ? null : this.#note(pool, known);
  }

  #note(pool: Pool, held: HeldPool): HeldPool {
    pool.held = held;
    return held;
  }

  /** Creates a pool with units that were leased without a request. */
  add(pool: Pool, leased: number): HeldPool {
    const held = new HeldPool(pool, this, this.sliceOf(pool));
    const { usedUntil } = this.#slices;
    const windowMs = windowMsOf[pool.kind];
    held.leased = leased;
    if (usedUntil === null || windowMs === null) held.available = leased;
    else held.window?.add(usedUntil - windowMs, leased);
    this.#byName.set(pool.name, held);
    // It may be one of very many that are used once, which a sweep only has to forget.
    this.sweepAfter(held, mostTicks / 4);
    return held;
  }

  sliceOf(pool: Pool): number {
    return sliceOf(pool, this.#slices.sliceDivisor);
  }

  values(): Iterable<HeldPool> {
    return this.#byName.values();
  }

  /** Schedules a sweep after that many ticks, unless one is due earlier. */
  sweepIn(held: HeldPool, ticks: number): void {
    const at = this.#tick + Math.max(1, Math.min(ticks, mostTicks - 1));
    if (held.sweepAt > this.#tick && held.sweepAt <= at) return;
    held.sweepAt = at;
    (this.#sweeps[at % mostTicks] as HeldPool[]).push(held);
  }

  /**
   * The same for pools that have nothing to return, of which there may be very many. Their sweeps are spread over many
   * ticks so that they delay no call.
   */
  sweepAfter(held: HeldPool, ticks: number): void {
    this.sweepIn(held, ticks + (Math.floor(this.#spread++ / neighbours) % spreadTicks));
  }

  /** Begins the next tick, whose sweeps are then due. */
  beginTick(now: number): void {
    const { sliceDivisor, usedUntil } = this.#slices;
    if (usedUntil !== null && now >= usedUntil) this.#slices = { sliceDivisor, usedUntil: null };
    const tick = ++this.#tick;
    const pools = this.#sweeps[tick % mostTicks] as HeldPool[];
    if (pools.length === 0) return;
    this.#sweeps[tick % mostTicks] = [];
    this.#due.push({ tick, pools, next: 0 });
  }

  /**
   * Does some of the sweeps that are due.
   * @returns whether there are more
   */
  sweepSome(sweep: (held: HeldPool) => void): boolean {
    for (let left = mostSwept; left > 0; left--) {
      const [due] = this.#due;
      if (due === undefined) return false;
      const held = due.pools[due.next++] as HeldPool;
      if (due.next === due.pools.length) this.#due.shift();
      // It may have been scheduled anew meanwhile.
      if (held.sweepAt === due.tick && held.home === this) sweep(held);
    }
    return this.#due.length > 0;
  }

  /** Drops a pool. `Pool.held` may refer to it for long, so most of its memory is freed. */
  forget(held: HeldPool): void {
    held.home = null;
    held.window?.clear();
    this.#byName.delete(held.name);
  }
}
