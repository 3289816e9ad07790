import type { PoolStatement } from '../store/shares.js';
import { coolMsOf } from './kinds.js';
import type { OwnedPool } from './owned-pool.js';

/** After another host's wish, what is free goes back at once for so long. */
const wishedMs = 1000;
/** What was free for so long goes back. */
const idleMs = 5000;
/** A share is stated at least so often, should the store have lost it. */
const restateMs = 30_000;
/** After a denial nobody asks again for so long. */
const dryMs = 100;
/**
 * What a host that is cut off may still have under way of what is given back by its users: those calls are counted for
 * so long after its deadline, and not after that.
 */
const slotGraceMs = 15_000;
/** Seconds of its use that a host has in hand where there is plenty, and the least number of units. */
const spareSeconds = 4;
const leastSpare = 8;

/** What a host knows of its share of one pool. The share itself is the pool's `limit`. */
export class PoolShare {
  readonly pool: OwnedPool;
  /** The store may count more for this host than it has. */
  isDirty = false;
  /** Until then there is nothing to be had. */
  dryUntil = Number.NEGATIVE_INFINITY;
  /** Until then other hosts lack units. */
  wishedUntil = Number.NEGATIVE_INFINITY;
  #idle = 0;
  #idleAt: number;
  #statedAt: number;

  constructor(pool: OwnedPool, now: number) {
    this.pool = pool;
    this.#idleAt = now;
    this.#statedAt = now;
  }

  /** Its users have no units, nobody else has any for it, and there is nothing to remember. */
  isDone(now: number): boolean {
    return this.pool.limit === 0 && !this.isDirty && now >= this.dryUntil;
  }

  /** Other hosts lack units. @returns false where that is known */
  wish(now: number): boolean {
    const isKnown = this.wishedUntil - now > wishedMs / 2;
    if (isKnown) return false;
    this.wishedUntil = now + wishedMs;
    // It may be that all have too much.
    this.isDirty = true;
    return true;
  }

  /** Notes from time to time what was free all the while. */
  sweep(now: number): void {
    if (now - this.#idleAt < idleMs) return;
    this.#idle = Math.max(0, Math.min(this.pool.idle, this.pool.free));
    this.#idleAt = now;
    this.pool.idle = this.pool.free;
  }

  /** There is something to be said of it. */
  isDue(now: number): boolean {
    const { pool } = this;
    const isOld = pool.limit > 0 && now - this.#statedAt >= restateMs;
    return this.isDirty || isOld || pool.free < 0 || this.#surplus(now) > 0;
  }

  /** All that is free is given up, and what is used too much is owned to: the share is what is in use. */
  disown(): void {
    this.pool.resize(this.pool.limit - this.pool.free);
    this.isDirty = true;
  }

  /** Gives up what nobody here needs, and says what is left and what is lacking. Until it is answered, nothing changes. */
  state(now: number): PoolStatement {
    const { pool } = this;
    if (pool.free < 0) this.disown();
    const surplus = this.#surplus(now);
    pool.resize(pool.limit - surplus);
    pool.left += surplus;
    this.#idle = 0;
    this.isDirty = true;
    let need = 0;
    let want = 0;
    let least = Number.POSITIVE_INFINITY;
    for (const { stated } of pool.asks) {
      need += stated.need;
      want += stated.want;
      least = Math.min(least, stated.least);
    }
    const lacked = Math.max(0, need - pool.usable);
    const spare = Math.max(leastSpare, spareSeconds * (want - need));
    return {
      pool: pool.name,
      limit: pool.total,
      held: pool.limit,
      need: lacked,
      least: lacked === 0 ? 0 : Math.max(1, least - pool.usable),
      want: lacked === 0 ? 0 : lacked + spare,
      blockMs: coolMsOf[pool.kind] ?? slotGraceMs,
    };
  }

  /** The store has answered. */
  accept(statement: PoolStatement, granted: number, left: number, now: number): void {
    this.isDirty = statement.limit !== this.pool.total;
    this.#statedAt = now;
    this.pool.left = left;
    this.pool.resize(this.pool.limit + granted);
    if (granted < statement.need) this.dryUntil = now + dryMs;
  }

  #surplus(now: number): number {
    const { free, excess, asks } = this.pool;
    if (free <= 0) return 0;
    if (asks.length > 0) return Math.min(free, excess);
    return now < this.wishedUntil ? free : Math.min(free, Math.max(this.#idle, excess));
  }
}
