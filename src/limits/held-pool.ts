import { WideMap } from '../wire/wide-map.js';
import type { Denial } from './admission.js';
import type { PoolAnswer, PoolAsk, Slices } from './lease-messages.js';
import { type Demand, type Pool, type PoolView, sliceOf, untouched, windowMsOf } from './pool.js';
import { SlidingWindow } from './sliding-window.js';
import { WaitingLine } from './waiting-line.js';

/** Client's wait where nobody knows when there will be units. */
const unknownRetryMs = 1000;
/** Longest time for which a pool is taken for used up without asking. */
const longestExhaustedMs = 1000;
/** Denials further apart than this have nothing to do with each other. */
const denialsApartMs = 1000;
/** Wait before the next ask after the second denial in a row; each further one doubles it. */
const firstDenialWaitMs = 10;
/** Longest such wait where there are said to be units again. */
const waitAfterRefillMs = 20;
/** A worker with so many calls since the last sweep is busy, and asks for more when what it has lasts for less than this. */
const busyCalls = 8;
const askAheadSeconds = 0.25;
/** Sweeps that lie further ahead than this are looked at again then. A power of two. */
const mostTicks = 1024;
/**
 * Sweeps of pools of which no more than the slice is held are spread over so many ticks, 64 pools at each: pools that were made
 * one after the other are neighbours in memory.
 */
const spreadTicks = 400;
const neighbours = 64;

/** One pool's numbers at a worker. At every moment `available`, `inUse`, `spent` and `inWindow` make `leased`. */
export interface HeldUnits {
  readonly name: string;
  readonly available: number;
  readonly inUse: number;
  readonly spent: number;
  readonly inWindow: number;
  readonly leased: number;
  /** Calls that wait for units of this pool. */
  readonly waiting: number;
  /** Nothing is lost when it is forgotten. */
  readonly isIdle: boolean;
}

/**
 * A pool as one worker sees it: what it was leased of it. `available`, `inUse`, `spent` and what is in the window always
 * make `leased`. Of most pools a worker has its slice and never asks for more: what belongs to a negotiation is apart.
 */
export class HeldPool {
  readonly name: string;
  /** Null once it is forgotten. */
  home: HeldPools | null;
  /** Used units that come back by themselves; null where none do. */
  readonly window: SlidingWindow | null;
  /** What it has of it without asking: see `sliceOf`. */
  slice: number;
  /** Units that may be used now; below zero only when more was used than the primary could be told of. */
  available = 0;
  /** Units in use that time does not bring back. */
  inUse = 0;
  /** What the primary has leased to this worker, as far as it has arrived here. */
  leased = 0;
  /** The tick at which it is swept. */
  sweepAt = -1;
  /** How many times in a row it was found idle by a sweep. */
  idleSweeps = 0;
  /** Of more than its slice, or less; null where there is none. */
  negotiation: Negotiation | null = null;

  constructor(pool: Pool, home: HeldPools, slice: number) {
    this.name = pool.name;
    this.home = home;
    this.slice = slice;
    const windowMs = windowMsOf[pool.kind];
    this.window = windowMs === null ? null : new SlidingWindow(windowMs);
  }

  /** The negotiation, begun where there is none. */
  negotiate(): Negotiation {
    this.negotiation ??= new Negotiation(this.available);
    return this.negotiation;
  }

  /** Nothing but its slice is held, and the primary has no more to say of it. */
  isSettled(now: number): boolean {
    return this.leased === this.slice && (this.negotiation === null || this.negotiation.isOver(now));
  }

  /** Nothing is lost when it is forgotten. */
  isIdle(now: number): boolean {
    return this.available === this.slice && this.isSettled(now);
  }

  /** Units that a call may take. */
  get usable(): number {
    return this.negotiation === null ? this.available : this.available - this.negotiation.owed;
  }

  /** What becomes free is not for this worker's later calls alone: others wait for it, here or elsewhere. */
  get isWanted(): boolean {
    const { negotiation } = this;
    return (
      negotiation !== null && (negotiation.line.size > 0 || negotiation.owed > 0 || negotiation.isRecalled)
    );
  }

  /** There is too little for a call, or others came before it. */
  isShort(amount: number, sequence: number): boolean {
    if (amount === 0) return false;
    const { negotiation } = this;
    if (negotiation === null) return this.available < amount;
    const { first } = negotiation.line;
    return this.available - negotiation.owed < amount || (first !== null && first.sequence < sequence);
  }

  /** There is too little for a call elsewhere, as far as is known. */
  isExhausted(amount: number, now: number): boolean {
    return this.negotiation?.isExhausted(amount, now) ?? false;
  }

  /** Makes available what has come back. */
  collect(now: number): void {
    if (this.window !== null) this.available += this.window.collect(now);
  }

  take(amount: number, now: number): void {
    this.available -= amount;
    this.negotiation?.noteTaken(amount, this.available);
    if (this.window === null) this.inUse += amount;
    else this.window.add(now, amount, this.leased);
  }

  /** Takes units out that go back to the primary. */
  giveBack(amount: number): void {
    this.available -= amount;
    this.leased -= amount;
    this.negotiation?.noteBack(amount, this.available);
  }

  /**
   * More is to be asked for, before a call lacks it: half of the slice is used, or as fast as its units are taken it will
   * be short in a moment, while there are a lot elsewhere.
   */
  get runsOut(): boolean {
    const { negotiation } = this;
    if (negotiation === null) return this.available * 2 < this.slice;
    if (negotiation.calls < busyCalls || negotiation.isAsking || this.window === null) return false;
    const perSecond = Math.max(negotiation.taken, negotiation.takenBefore);
    if (this.available >= perSecond * askAheadSeconds) return false;
    return negotiation.freeElsewhere !== null && negotiation.freeElsewhere >= perSecond;
  }

  /** Units in use will not come back. */
  spend(amount: number): void {
    this.inUse -= amount;
    this.negotiate().spent += amount;
  }

  /** @returns what was spent since this was last asked: it is no part of what is held any more */
  tellSpent(): number {
    const { spent } = this.negotiate();
    this.negotiate().spent = 0;
    this.leased -= spent;
    return spent;
  }

  /** Units in use were not needed after all. @param bucket when they were taken, in the terms of `SlidingWindow` */
  unuse(bucket: number, amount: number): void {
    if (this.window !== null) {
      // Where the bucket has come back, so have its units.
      this.available += this.window.remove(bucket, amount);
      return;
    }
    this.inUse -= amount;
    this.available += amount;
  }

  /**
   * What a call hears for which there is too little.
   * @param isAlone there is no primary any more that could say whether there is more
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

  /** There is so much of a budget once calls under way have cost nothing. */
  #mayBeGivenBack(amount: number): boolean {
    const { available, inUse, negotiation } = this;
    const elsewhere =
      negotiation === null ? 0 : negotiation.inUseElsewhere + (negotiation.freeElsewhere ?? 0);
    return available + inUse + elsewhere >= amount;
  }

  /** No other worker can have units for the demand. */
  #isAllKnown({ pool, amount }: Demand, now: number): boolean {
    return this.leased >= pool.limit || this.isExhausted(amount, now);
  }

  /** Milliseconds until there may be so many units. */
  retryAfterMs(amount: number, now: number): number {
    const missing = amount - this.available - (this.negotiation?.freeElsewhere ?? 0);
    const own = this.window?.backAt(missing) ?? Number.POSITIVE_INFINITY;
    const at = Math.min(own, this.negotiation?.retryAt(now) ?? Number.POSITIVE_INFINITY);
    return at === Number.POSITIVE_INFINITY ? unknownRetryMs : Math.max(1, Math.ceil(at - now));
  }

  /** What a caller may be told of it. @param pool as the config has it by now */
  view(pool: Pool, now: number): PoolView {
    const { limit } = pool;
    this.collect(now);
    const used = this.inUse + (this.window?.total ?? 0);
    const freeElsewhere = this.negotiation?.freeElsewhere ?? null;
    const known = freeElsewhere === null ? limit : this.available + freeElsewhere;
    const remaining = Math.max(0, Math.min(known, limit - used));
    if (remaining >= limit) return untouched(pool);
    const lastAt = this.window?.lastAt() ?? null;
    const resetMs = lastAt === null ? this.retryAfterMs(1, now) : Math.max(1, Math.ceil(lastAt - now));
    return { limit, remaining, resetMs };
  }

  /** Its numbers. */
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
   * @returns how much beyond its slice was idle since the one before, and is more than so much time takes again
   */
  sweep(): number {
    if (this.negotiation === null) {
      // Its slice may be smaller than it was: from now on it is noted what is idle of it.
      if (this.leased > this.slice) this.negotiation = new Negotiation(this.available);
      return 0;
    }
    const { taken, idle: least } = this.negotiation;
    const idle = Math.min(least, this.available) - (this.window === null ? 0 : taken);
    this.negotiation.endSweep(this.available);
    return Math.max(0, Math.min(idle, this.leased - this.slice));
  }

  /**
   * Asks anew, in place of an ask that is under way, for what is missing of so many units.
   * @param least fewer units help nobody
   * @param sequence the last call that came to the worker
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

/** What a worker and the primary have said of a pool beyond the worker's slice, and the calls that wait for that. */
class Negotiation {
  /** Calls that lack units of this pool. */
  readonly line = new WaitingLine();
  /** Units that are to go back before any is used. */
  owed = 0;
  /** Other workers lack units, and what becomes idle goes back at once: until then. */
  isRecalled = false;
  recalledUntil = 0;
  /** Units used since the last sweep, and by how many calls. */
  taken = 0;
  calls = 0;
  /** Units that were used between the last two sweeps. */
  takenBefore = 0;
  /** Least that was available since the last sweep: so much was idle all the time. */
  idle: number;
  /** Units that are used up, of which the primary has not heard. */
  spent = 0;
  /** Number of the last ask, and whether its answer is still to come. */
  number = 0;
  isAsking = false;
  /** The last ask was for calls up to this one, in their order at the worker. */
  through = 0;
  /** Nobody knew whether there was more when the primary last spoke. */
  isCutOff = false;
  /** Units that no worker had when the primary last spoke; null before it did. */
  freeElsewhere: number | null = null;
  /** Units that calls at other workers held when the primary last spoke, where it has denied some of a budget. */
  inUseElsewhere = 0;
  /** Until then nobody need be asked for what was denied last: there is too little. */
  #exhaustedUntil = Number.NEGATIVE_INFINITY;
  /** Least that the last ask was for, and least that was denied last: there may be enough for a smaller call. */
  #least = 0;
  #deniedFrom = 0;
  #retryAt = Number.NEGATIVE_INFINITY;
  #deniedAt = Number.NEGATIVE_INFINITY;
  #denials = 0;

  /** @param available units at this moment */
  constructor(available: number) {
    this.idle = available;
  }

  /** Units are taken by a call. @param available what is left */
  noteTaken(amount: number, available: number): void {
    this.taken += amount;
    this.calls++;
    if (available < this.idle) this.idle = available;
  }

  /** Units go back to the primary. @param available what is left */
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

  /** Nothing of it is needed any more. */
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

  /** Nobody has said whether there is more, or nobody could. */
  isUndecided(amount: number, now: number): boolean {
    return this.isCutOff || this.isUnanswered(amount, now);
  }

  /** The primary was asked and has not said yet whether there is so much: nobody may say that there is not. */
  isUnanswered(amount: number, now: number): boolean {
    return this.isAsking && !this.isExhausted(amount, now);
  }

  /** When there may be units elsewhere, as far as that is known. */
  retryAt(now: number): number {
    return this.#retryAt > now ? this.#retryAt : Number.POSITIVE_INFINITY;
  }

  /** An ask begins. */
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
   * The primary has no more. One denial may be chance, and whoever asks next is heard; when they come in a row, each
   * makes this worker wait longer before it asks again.
   * @param retryAt when others will have units, as far as that is known
   */
  markExhausted(retryAt: number | null, now: number): void {
    this.#denials = now - this.#deniedAt > denialsApartMs ? 1 : Math.min(this.#denials + 1, 16);
    this.#deniedAt = now;
    this.#deniedFrom = this.#least;
    this.#retryAt = retryAt ?? Number.NEGATIVE_INFINITY;
    const until = Math.max(now + this.#denialWaitMs(), retryAt ?? now);
    this.#exhaustedUntil = Math.min(now + longestExhaustedMs, until);
  }

  /** There are units again. They may be asked for, but not by one denied call after the other. */
  markRefilled(): void {
    const waitMs = Math.min(this.#denialWaitMs(), waitAfterRefillMs);
    this.#exhaustedUntil = Math.min(this.#exhaustedUntil, this.#deniedAt + waitMs);
    this.#retryAt = Number.NEGATIVE_INFINITY;
  }

  #denialWaitMs(): number {
    return this.#denials <= 1 ? 0 : firstDenialWaitMs * 2 ** (this.#denials - 2);
  }
}

/** The pools of which a worker has used anything lately, or has other units than its slice. */
export class HeldPools {
  readonly #byName = new WideMap<HeldPool>();
  /** Pools by the tick at which they are swept, modulo the length. One that is swept at another tick by now is passed over. */
  readonly #sweeps: HeldPool[][] = Array.from({ length: mostTicks }, () => []);
  #tick = 0;
  #spread = 0;
  #slices: Slices = { sliceDivisor: 0, usedUntil: null };

  /** Before any pool is used. */
  setSlices(slices: Slices): void {
    this.#slices = slices;
  }

  get(name: string): HeldPool | undefined {
    return this.#byName.get(name);
  }

  /** A pool, made with its slice where there is none of its name. */
  of(pool: Pool): HeldPool {
    return this.seen(pool) ?? this.#note(pool, this.add(pool, this.sliceOf(pool)));
  }

  /** The same, but null where nothing is known of the pool: none is made. */
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

  /** Makes a pool of which so many units were leased without being asked for. */
  add(pool: Pool, leased: number): HeldPool {
    const held = new HeldPool(pool, this, this.sliceOf(pool));
    const { usedUntil } = this.#slices;
    const windowMs = windowMsOf[pool.kind];
    held.leased = leased;
    if (usedUntil === null || windowMs === null) held.available = leased;
    else held.window?.add(usedUntil - windowMs, leased);
    this.#byName.set(pool.name, held);
    // It may be one of very many that are used once: nothing is to be done for it but to forget it.
    this.sweepAfter(held, mostTicks / 4);
    return held;
  }

  sliceOf(pool: Pool): number {
    return sliceOf(pool, this.#slices.sliceDivisor);
  }

  values(): Iterable<HeldPool> {
    return this.#byName.values();
  }

  /** Has a pool swept after so many ticks, unless it is to be before. */
  sweepIn(held: HeldPool, ticks: number): void {
    const at = this.#tick + Math.max(1, Math.min(ticks, mostTicks - 1));
    if (held.sweepAt > this.#tick && held.sweepAt <= at) return;
    held.sweepAt = at;
    (this.#sweeps[at % mostTicks] as HeldPool[]).push(held);
  }

  /** The same for one of very many that have nothing to give back. They are spread over many ticks, and delay no call. */
  sweepAfter(held: HeldPool, ticks: number): void {
    this.sweepIn(held, ticks + (Math.floor(this.#spread++ / neighbours) % spreadTicks));
  }

  /** @returns the pools that are to be swept at the next tick, which begins */
  nextSweeps(now: number): HeldPool[] {
    const { sliceDivisor, usedUntil } = this.#slices;
    if (usedUntil !== null && now >= usedUntil) this.#slices = { sliceDivisor, usedUntil: null };
    const tick = ++this.#tick;
    const due = this.#sweeps[tick % mostTicks] as HeldPool[];
    if (due.length === 0) return due;
    this.#sweeps[tick % mostTicks] = [];
    return due.filter((held) => held.sweepAt === tick && held.home === this);
  }

  /** Lets go of a pool. Whoever has found it before may remember it for long: little is left of it. */
  forget(held: HeldPool): void {
    held.home = null;
    held.window?.clear();
    this.#byName.delete(held.name);
  }
}
