import { type Demand, isGivenBack, type Pool } from './kinds.js';

/** What an admission does with its units when it knows more. */
export interface AdmissionHost {
  /** So many units of a window were not used after all. */
  unuse(pool: Pool, bucket: number, amount: number): void;
  /** So many more were used. */
  overuse(pool: Pool, amount: number): void;
  /** Of units that are used up for good, so many are. */
  spend(pool: Pool, amount: number): void;
  /** The units are given back whose users do that. */
  release(demands: readonly Demand[]): void;
}

/** A call that holds the units of all its demands. */
export class Admission {
  readonly outcome = 'admitted';
  readonly demands: readonly Demand[];
  readonly #host: AdmissionHost;
  readonly #bucket: number;
  /** What was really used, by demand, where that is known. */
  #used: (number | undefined)[] | null = null;
  #isReleased = false;

  /** @param bucket when its units were taken, in the terms of `Cooling` */
  constructor(host: AdmissionHost, demands: readonly Demand[], bucket: number) {
    this.#host = host;
    this.demands = demands;
    this.#bucket = bucket;
  }

  /**
   * Tells how much of a window the call really used, once: what it reserved beyond that is available again, and what it
   * used beyond what it reserved is taken in addition, even if there is none. Does nothing the second time, for a pool
   * that was not demanded, and for slots.
   * @param actual 0 or more; a part of a unit counts as a whole one
   */
  settle(pool: Pool, actual: number): void {
    let index = 0;
    while (index < this.demands.length && this.demands[index]?.pool.name !== pool.name) index++;
    const demand = this.demands[index];
    if (demand === undefined || isGivenBack(pool) || !Number.isFinite(actual)) return;
    this.#used ??= [];
    if (this.#used[index] !== undefined) return;
    const used = Math.max(0, Math.ceil(actual));
    this.#used[index] = used;
    if (used < demand.amount) this.#host.unuse(demand.pool, this.#bucket, demand.amount - used);
    else if (used > demand.amount) this.#host.overuse(demand.pool, used - demand.amount);
    if (demand.pool.kind === 'spend') this.#host.spend(demand.pool, used);
  }

  /** Frees the slots, and leaves all that was not settled as it was reserved. Does nothing the second time. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    for (const { pool, amount } of this.demands) if (pool.kind === 'spend') this.settle(pool, amount);
    this.#host.release(this.demands);
  }

  /** The call does not take place: everything goes back that was not settled or released before. */
  undo(): void {
    for (const { pool } of this.demands) this.settle(pool, 0);
    this.release();
  }
}
