import { type Demand, isReturnable, type Pool, type PoolKind } from './pool.js';

/** The result for a call's demands. */
export type Decision = Admission | Denial;

/** The demands cannot be met, and nothing was taken. */
export interface Denial {
  readonly outcome: 'denied';
  /** The pool that lacks units. */
  readonly pool: Pool;
  /**
   * `unknown`: more units may exist, but that could not be determined in time. The primary did not reply or is gone, or
   * its store cannot be reached.
   */
  readonly reason: 'exhausted' | 'unknown';
  /** Milliseconds until a retry may succeed, as far as known. Null if none will, since a budget is exhausted. */
  readonly retryAfterMs: number | null;
}

/** Returns the denial to report: `exhausted` before `unknown`, then the longer wait. */
export function denialToReport(one: Denial | null, other: Denial): Denial {
  if (one === null) return other;
  if (one.reason !== other.reason) return one.reason === 'unknown' ? other : one;
  const waitMs = ({ retryAfterMs }: Denial): number => retryAfterMs ?? Number.POSITIVE_INFINITY;
  return waitMs(other) > waitMs(one) ? other : one;
}

/** The holder of an admission's units. */
interface UnitHolder {
  /**
   * Corrects what a call has taken of a pool.
   * @param bucket when it was taken: a bucket of `SlidingWindow`
   * @param spare what it did not use; negative if it used more
   */
  putRight(pool: Pool, bucket: number, spare: number): void;
  /** Marks that many units as used up for good. */
  spend(pool: Pool, amount: number): void;
  /** Frees the slots among the demands. Other units are used up or become free with time. */
  release(demands: readonly Demand[]): void;
}

/** An admitted call. Holds the units of all its demands, at the worker to which they were leased. */
export class Admission {
  readonly outcome = 'admitted';
  readonly demands: readonly Demand[];
  readonly #holder: UnitHolder;
  readonly #bucket: number;
  /** What was really used, by demand, if known. */
  #used: (number | undefined)[] | null = null;
  #isReleased = false;
  #hasFreed = false;

  /** @param bucket when its units were taken: a bucket of `SlidingWindow` */
  constructor(holder: UnitHolder, demands: readonly Demand[], bucket: number) {
    this.#holder = holder;
    this.demands = demands;
    this.#bucket = bucket;
  }

  /**
   * Reports, once, how much the call really used of each of its pools of a kind. What it reserved beyond that is
   * available again. What it used beyond its reservation is taken in addition, even if there is none. No-op the second
   * time, and for slots.
   * @param actual 0 or more, rounded up to whole units
   */
  settle(kind: PoolKind, actual: number): void {
    for (let index = 0; index < this.demands.length; index++)
      if (this.demands[index]?.pool.kind === kind) this.#settleAt(index, actual);
  }

  #settleAt(index: number, actual: number): void {
    const demand = this.demands[index] as Demand;
    if (isReturnable(demand.pool) || !Number.isFinite(actual)) return;
    this.#used ??= new Array(this.demands.length);
    if (this.#used[index] !== undefined) return;
    const used = Math.max(0, Math.ceil(actual));
    this.#used[index] = used;
    const { pool, amount } = demand;
    this.#holder.putRight(pool, this.#bucket, amount - used);
    if (pool.kind === 'budget') this.#holder.spend(pool, used);
  }

  /** Frees only the slots, since the call's use is not known yet. No-op the second time. */
  freeSlots(): void {
    if (this.#hasFreed) return;
    this.#hasFreed = true;
    this.#holder.release(this.demands);
  }

  /** Frees the slots. What was not settled remains as reserved. No-op the second time. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    for (let index = 0; index < this.demands.length; index++) {
      const { pool, amount } = this.demands[index] as Demand;
      if (pool.kind === 'budget') this.#settleAt(index, amount);
    }
    this.freeSlots();
  }

  /** Undoes an admission whose call does not take place: returns everything that was not settled or released before. */
  undo(): void {
    for (let index = 0; index < this.demands.length; index++) this.#settleAt(index, 0);
    this.release();
  }
}
