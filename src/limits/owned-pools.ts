import { WideMap } from '../wire/wide-map.js';
import type { OwnedPool } from './owned-pool.js';
import { ofAnyPeriod } from './pools.js';

/** The pools of which the primary has state beyond the limit. Several hundred thousand if all pools are in use. */
export class OwnedPools {
  readonly #byName = new WideMap<OwnedPool>();
  /**
   * Pools of budgets, by the name that the config has for all periods of a budget. Few periods are in use at a time.
   */
  readonly #periods = new WideMap<readonly OwnedPool[]>();

  get(name: string): OwnedPool | undefined {
    return this.#byName.get(name);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  add(pool: OwnedPool): void {
    this.#byName.set(pool.name, pool);
    const budget = ofAnyPeriod(pool.name);
    if (budget !== null) this.#periods.set(budget, [...(this.#periods.get(budget) ?? []), pool]);
  }

  delete(pool: OwnedPool): void {
    this.#byName.delete(pool.name);
    const budget = ofAnyPeriod(pool.name);
    if (budget === null) return;
    const left = (this.#periods.get(budget) ?? []).filter((each) => each !== pool);
    if (left.length === 0) this.#periods.delete(budget);
    else this.#periods.set(budget, left);
  }

  /** Returns the pools that a name of the config stands for: the pool, or that of each period of a budget. */
  under(name: string): readonly OwnedPool[] {
    const pool = this.#byName.get(name);
    const periods = this.#periods.get(name) ?? [];
    return pool === undefined ? periods : [...periods, pool];
  }

  values(): Generator<OwnedPool, void, undefined> {
    return this.#byName.values();
  }
}
