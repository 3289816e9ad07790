import { HeldPool } from './held-pool.js';
import type { Pool } from './kinds.js';

/** The pools of which a worker holds anything, or has lately. */
export class HeldPools {
  readonly #byName = new Map<string, HeldPool>();

  get(name: string): HeldPool | undefined {
    return this.#byName.get(name);
  }

  /** A pool, made where there is none of its name. */
  of(pool: Pool): HeldPool {
    const known = this.#byName.get(pool.name);
    if (known !== undefined) return known;
    const made = new HeldPool(pool, this);
    this.#byName.set(pool.name, made);
    return made;
  }

  /**
   * The same, for calls that fall under the same limits one after the other: to look a name up means to touch memory
   * that is in no cache any more.
   * @param found what was found for such calls before, by the same indexes; empty at first
   */
  at(found: HeldPool[], index: number, pool: Pool): HeldPool {
    const before = found[index];
    if (before !== undefined && before.home === this && before.name === pool.name) return before;
    const held = this.of(pool);
    found[index] = held;
    return held;
  }

  values(): Iterable<HeldPool> {
    return this.#byName.values();
  }

  /** Lets go of a pool. Whoever has found it before may remember it for long: little is left of it. */
  forget(held: HeldPool): void {
    held.home = null;
    held.cooling?.clear();
    this.#byName.delete(held.name);
  }
}
