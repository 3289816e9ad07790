import type { Admission } from './decision.js';
import type { HeldPool, HeldPools } from './held-pool.js';
import { type Demand, isGivenBack, type Pool } from './pool.js';

/** What an admission does with its units when it knows more. */
export interface AdmissionHost {
  readonly pools: HeldPools;
  /** So many units of a window were not used after all. */
  unuse(held: HeldPool, bucket: number, amount: number): void;
  /** So many more were used. */
  overuse(held: HeldPool, amount: number): void;
  /** Of units that are used up for good, so many are. */
  spend(held: HeldPool, amount: number): void;
  /** The units are given back whose users do that. */
  release(demands: readonly Demand[]): void;
}

/** A part of a unit counts as a whole one. */
function wholeUnits(used: number): number {
  return Math.max(0, Math.ceil(used));
}

/**
 * Puts right what a call has taken of a pool.
 * @param bucket when it was taken
 * @param spare what it did not use of that; below zero where it used more
 */
function putRight(host: AdmissionHost, held: HeldPool, bucket: number, spare: number): void {
  if (spare > 0) host.unuse(held, bucket, spare);
  else if (spare < 0) host.overuse(held, -spare);
}

/** A call that holds the units of all its demands, at the worker that leased them. */
export class LeaseAdmission implements Admission {
  readonly outcome = 'admitted';
  readonly demands: readonly Demand[];
  readonly #host: AdmissionHost;
  readonly #bucket: number;
  /** What was really used, by demand, where that is known. */
  #used: (number | undefined)[] | null = null;
  #isReleased = false;
  #hasFreed = false;

  /** @param bucket when its units were taken, in the terms of `SlidingWindow` */
  constructor(host: AdmissionHost, demands: readonly Demand[], bucket: number) {
    this.#host = host;
    this.demands = demands;
    this.#bucket = bucket;
  }

  settle(pool: Pool, actual: number): void {
    let index = 0;
    while (index < this.demands.length && this.demands[index]?.pool.name !== pool.name) index++;
    this.settleAt(index, actual);
  }

  settleAt(index: number, actual: number): void {
    const demand = this.demands[index];
    if (demand === undefined || isGivenBack(demand.pool) || !Number.isFinite(actual)) return;
    this.#used ??= new Array(this.demands.length);
    if (this.#used[index] !== undefined) return;
    const used = wholeUnits(actual);
    this.#used[index] = used;
    const held = this.#host.pools.of(demand.pool);
    putRight(this.#host, held, this.#bucket, demand.amount - used);
    if (demand.pool.kind === 'budget') this.#host.spend(held, used);
  }

  freeSlots(): void {
    if (this.#hasFreed) return;
    this.#hasFreed = true;
    this.#host.release(this.demands);
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    for (let index = 0; index < this.demands.length; index++) {
      const { pool, amount } = this.demands[index] as Demand;
      if (pool.kind === 'budget') this.settleAt(index, amount);
    }
    this.freeSlots();
  }

  undo(): void {
    for (let index = 0; index < this.demands.length; index++) this.settleAt(index, 0);
    this.release();
  }
}
