import { type Demand, isGivenBack, type Pool, type PoolKind } from './pool.js';

/** What becomes of a call's demands. */
export type Decision = Admission | Denial;

/** The demands cannot be met, and none of them was taken. */
export interface Denial {
  readonly outcome: 'denied';
  /** The pool that has too little. */
  readonly pool: Pool;
  /**
   * `unknown`: there may be more, but nobody has said so in time: the primary did not answer or is gone, or the store
   * behind it cannot be reached.
   */
  readonly reason: 'exhausted' | 'unknown';
  /** Milliseconds until another try may succeed, as far as that is known; null where none will: a budget is used up. */
  readonly retryAfterMs: number | null;
}

/** The one of two denials that a call hears: what is known before what is not, then the longer wait. */
export function graver(one: Denial | null, other: Denial): Denial {
  if (one === null) return other;
  if (one.reason !== other.reason) return one.reason === 'unknown' ? other : one;
  const waitMs = ({ retryAfterMs }: Denial): number => retryAfterMs ?? Number.POSITIVE_INFINITY;
  return waitMs(other) > waitMs(one) ? other : one;
}

/** Whose units an admission holds. */
interface UnitHolder {
  /**
   * Puts right what a call has taken of a pool.
   * @param bucket when it was taken, in the terms of `SlidingWindow`
   * @param spare what it did not use of that; below zero where it used more
   */
  putRight(pool: Pool, bucket: number, spare: number): void;
  /** Of units that are used up for good, so many are. */
  spend(pool: Pool, amount: number): void;
  /** Gives back the slots among them; other units are used up or come back with time. */
  release(demands: readonly Demand[]): void;
}

/** A call that is let in: it holds the units of all its demands, at the worker that leased them. */
export class Admission {
  readonly outcome = 'admitted';
  readonly demands: readonly Demand[];
  readonly #holder: UnitHolder;
  readonly #bucket: number;
  /** What was really used, by demand, where that is known. */
  #used: (number | undefined)[] | null = null;
  #isReleased = false;
  #hasFreed = false;

  /** @param bucket when its units were taken, in the terms of `SlidingWindow` */
  constructor(holder: UnitHolder, demands: readonly Demand[], bucket: number) {
    this.#holder = holder;
    this.demands = demands;
    this.#bucket = bucket;
  }

  /**
   * Tells how much the call really used of each of its pools of a kind, once: what it reserved beyond that is available
   * again, and what it used beyond what it reserved is taken in addition, even if there is none. Does nothing the second
   * time, and for slots.
   * @param actual 0 or more; a part of a unit counts as a whole one
   */
  settle(kind: PoolKind, actual: number): void {
    for (let index = 0; index < this.demands.length; index++)
      if (this.demands[index]?.pool.kind === kind) this.#settleAt(index, actual);
  }

  #settleAt(index: number, actual: number): void {
    const demand = this.demands[index] as Demand;
    if (isGivenBack(demand.pool) || !Number.isFinite(actual)) return;
    this.#used ??= new Array(this.demands.length);
    if (this.#used[index] !== undefined) return;
    const used = Math.max(0, Math.ceil(actual));
    this.#used[index] = used;
    const { pool, amount } = demand;
    this.#holder.putRight(pool, this.#bucket, amount - used);
    if (pool.kind === 'budget') this.#holder.spend(pool, used);
  }

  /** Frees the slots alone: what the call has used is not known yet. Does nothing the second time. */
  freeSlots(): void {
    if (this.#hasFreed) return;
    this.#hasFreed = true;
    this.#holder.release(this.demands);
  }

  /** Frees the slots, and leaves all that was not settled as it was reserved. Does nothing the second time. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    for (let index = 0; index < this.demands.length; index++) {
      const { pool, amount } = this.demands[index] as Demand;
      if (pool.kind === 'budget') this.#settleAt(index, amount);
    }
    this.freeSlots();
  }

  /** The call does not take place: everything goes back that was not settled or released before. */
  undo(): void {
    for (let index = 0; index < this.demands.length; index++) this.#settleAt(index, 0);
    this.release();
  }
}
