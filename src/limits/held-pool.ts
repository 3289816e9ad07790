import { Cooling } from './cooling.js';
import type { Denial } from './decision.js';
import type { HeldPools } from './held-pools.js';
import { coolMsOf, type Pool } from './kinds.js';
import type { PoolAnswer, PoolAsk } from './messages.js';
import { WaitingLine } from './waiting-line.js';

/** Client's wait where nobody knows when there will be units. */
const unknownRetryMs = 1000;
/** Longest time for which a pool is taken for empty without asking. */
const longestDryMs = 1000;
/** Denials further apart than this have nothing to do with each other. */
const denialsApartMs = 1000;
/** Rest after the second denial in a row; each further one doubles it. */
const firstRestMs = 10;
/** Longest rest where there is news of units. */
const restAfterNewsMs = 20;
/** A worker with so many calls since the last sweep is busy, and asks for more when what it has lasts for less than this. */
const busyCalls = 8;
const askAheadSeconds = 0.25;

/** One pool's numbers at a worker. At every moment `available`, `inUse`, `spent` and `cooling` make `held`. */
export interface HeldUnits {
  readonly name: string;
  readonly available: number;
  readonly inUse: number;
  readonly spent: number;
  readonly cooling: number;
  readonly held: number;
  /** Calls that wait for units of this pool. */
  readonly waiting: number;
}

/** A pool as one worker sees it: what it was leased of it. `available`, `inUse`, `spent` and what cools always make `held`. */
export class HeldPool {
  // What every call needs comes first, to lie together in memory.
  readonly name: string;
  /** Null once it is forgotten. */
  home: HeldPools | null;
  /** Used units that come back by themselves; null where none do. */
  readonly cooling: Cooling | null;
  /** Calls that lack units of this pool. */
  readonly line = new WaitingLine();
  /** Units that may be used now; below zero only when more was used than the primary could be told of. */
  available = 0;
  /** Units that are to go back before any is used. */
  owed = 0;
  /** Units used since the last sweep, and between that and the one before; and by how many calls since the last. */
  taken = 0;
  /** Least that was available since the last sweep: so much was idle all the time. */
  idle = 0;
  /** Units in use that time does not bring back. */
  inUse = 0;
  /** Other workers lack units, and what becomes idle goes back at once. */
  isContested = false;
  takenBefore = 0;
  #calls = 0;
  /** Units that are used up, of which the primary has not heard. */
  spent = 0;
  /** What the primary has leased to this worker, as far as it has arrived here. */
  held = 0;
  /** Number of the last ask, and whether its answer is still to come. */
  ask = 0;
  isAsking = false;
  /** The last ask was for calls up to this one, in their order at the worker. */
  askedThrough = 0;
  /** Until when it is contested, if it is. */
  contestedUntil = 0;
  /** Until then nobody need be asked for what was denied last: there is too little. */
  dryUntil = Number.NEGATIVE_INFINITY;
  /** Least that the last ask was for, and least that was denied last: there may be enough for a smaller call. */
  #askedFrom = 0;
  #dryFrom = 0;
  /** Nobody knew whether there was more when the primary last spoke. */
  isCutOff = false;
  /** Units that no worker had when the primary last spoke, and when that was. */
  freeElsewhere: number | null = null;
  freeAt = 0;
  #retryAt: number | null = null;
  #deniedAt = Number.NEGATIVE_INFINITY;
  #denials = 0;

  constructor({ name, kind }: Pool, home: HeldPools) {
    this.name = name;
    this.home = home;
    const coolMs = coolMsOf[kind];
    this.cooling = coolMs === null ? null : new Cooling(coolMs);
  }

  /** Nothing is lost when it is forgotten. */
  isIdle(now: number): boolean {
    return (
      this.held === 0 &&
      this.available === 0 &&
      this.spent === 0 &&
      this.line.size === 0 &&
      !this.isAsking &&
      now >= this.dryUntil &&
      now - this.#deniedAt > denialsApartMs
    );
  }

  /** Units that a call may take. */
  get usable(): number {
    return this.available - this.owed;
  }

  /** What becomes free is not for this worker's later calls alone: others wait for it, here or elsewhere. */
  get isWanted(): boolean {
    return this.line.size > 0 || this.owed > 0 || this.isContested;
  }

  /** There is too little for a call, or others came before it. */
  isShort(amount: number, sequence: number): boolean {
    if (amount === 0) return false;
    const { first } = this.line;
    return this.usable < amount || (first !== null && first.sequence < sequence);
  }

  /** There is too little for a call elsewhere, as far as is known. */
  isDry(amount: number, now: number): boolean {
    return now < this.dryUntil && amount >= this.#dryFrom;
  }

  /** Makes available what has cooled. */
  collect(now: number): void {
    if (this.cooling !== null) this.available += this.cooling.collect(now);
  }

  take(amount: number, now: number): void {
    this.available -= amount;
    this.taken += amount;
    this.#calls++;
    if (this.available < this.idle) this.idle = this.available;
    if (this.cooling === null) this.inUse += amount;
    else this.cooling.add(now, amount);
  }

  /** Takes units out that go back to the primary. */
  giveBack(amount: number): void {
    this.available -= amount;
    this.held -= amount;
    this.owed = Math.max(0, this.owed - amount);
    if (this.available < this.idle) this.idle = this.available;
  }

  /** As fast as its units are taken it will be short in a moment, while there are a lot elsewhere. */
  get runsOut(): boolean {
    if (this.#calls < busyCalls) return false;
    const perSecond = Math.max(this.taken, this.takenBefore);
    const isLow = this.cooling !== null && this.available < perSecond * askAheadSeconds;
    return isLow && this.freeElsewhere !== null && this.freeElsewhere >= perSecond;
  }

  /** Units in use will not come back. */
  spend(amount: number): void {
    this.inUse -= amount;
    this.spent += amount;
  }

  /** @returns what was spent since this was last asked: it is no part of what is held any more */
  tellSpent(): number {
    const { spent } = this;
    this.spent = 0;
    this.held -= spent;
    return spent;
  }

  /** Units in use were not needed after all. @param bucket when they were taken, in the terms of `Cooling` */
  unuse(bucket: number, amount: number): void {
    if (this.cooling !== null) {
      // Where the bucket has come back, so have its units.
      this.available += this.cooling.remove(bucket, amount);
      return;
    }
    this.inUse -= amount;
    this.available += amount;
  }

  /** The primary was asked and has not said yet whether there is more: nobody may say that there is none. */
  isUnanswered(now: number): boolean {
    return this.isAsking && now >= this.dryUntil;
  }

  /** What a call hears for which there is too little. */
  denial(pool: Pool, now: number): Denial {
    const retryAfterMs = this.available < 0 ? unknownRetryMs : this.retryAfterMs(now);
    const isUnknown = this.isCutOff || this.isUnanswered(now);
    return { outcome: 'denied', pool, reason: isUnknown ? 'unknown' : 'exhausted', retryAfterMs };
  }

  /** Its numbers. */
  units(): HeldUnits {
    const { name, available, inUse, spent, cooling, held, line } = this;
    return { name, available, inUse, spent, cooling: cooling?.total ?? 0, held, waiting: line.size };
  }

  /** Ends a sweep. @returns how much was idle since the one before, and is more than so much time takes again */
  sweep(): number {
    const spare = this.cooling === null ? 0 : this.taken;
    const idle = Math.max(0, Math.min(this.idle, this.available) - spare);
    this.idle = this.available;
    this.takenBefore = this.taken;
    this.taken = 0;
    this.#calls = 0;
    return idle;
  }

  /**
   * Asks anew, in place of an ask that is under way, for what is missing of so many units.
   * @param least fewer units help nobody
   * @param sequence the last call that came to the worker
   */
  stateAsk(amount: number, least: number, sequence: number): PoolAsk {
    this.isAsking = true;
    this.askedThrough = sequence;
    this.#askedFrom = least;
    const { usable } = this;
    const need = Math.max(1, amount - usable);
    return {
      pool: this.name,
      number: ++this.ask,
      need,
      least: Math.max(1, least - usable),
      want: need + Math.max(this.taken, this.takenBefore),
    };
  }

  /** Adds what the primary has granted. */
  accept(answer: PoolAnswer, now: number): void {
    this.available += answer.granted;
    this.held += answer.granted;
    this.freeElsewhere = answer.free;
    this.isCutOff = answer.isCutOff;
    this.freeAt = now;
    if (answer.number === this.ask) this.isAsking = false;
  }

  /**
   * The primary has no more. One denial may be chance, and whoever asks next is heard; when they come in a row, each
   * makes this worker rest longer before it asks again.
   * @param retryAt when others will have units, as far as that is known
   */
  markDry(retryAt: number | null, now: number): void {
    this.#denials = now - this.#deniedAt > denialsApartMs ? 1 : Math.min(this.#denials + 1, 16);
    this.#deniedAt = now;
    this.#dryFrom = this.#askedFrom;
    this.#retryAt = retryAt;
    this.dryUntil = Math.min(now + longestDryMs, Math.max(now + this.#restMs(), retryAt ?? now));
  }

  /** There are units again. They may be asked for, but not by one denied call after the other. */
  markWet(): void {
    this.dryUntil = Math.min(this.dryUntil, this.#deniedAt + Math.min(this.#restMs(), restAfterNewsMs));
    this.#retryAt = null;
  }

  /** Milliseconds until there may be units. */
  retryAfterMs(now: number): number {
    const own = this.cooling?.nextAt() ?? null;
    const elsewhere = this.#retryAt !== null && this.#retryAt > now ? this.#retryAt : null;
    const at = Math.min(own ?? Number.POSITIVE_INFINITY, elsewhere ?? Number.POSITIVE_INFINITY);
    return at === Number.POSITIVE_INFINITY ? unknownRetryMs : Math.max(1, Math.ceil(at - now));
  }

  #restMs(): number {
    return this.#denials <= 1 ? 0 : firstRestMs * 2 ** (this.#denials - 2);
  }
}
