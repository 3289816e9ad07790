import type { Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import type { Pool } from './pool.js';
import { findPool, type LimitedKey, type PoolsByName, poolsOfSubject } from './pools.js';

/** Most former pools that are remembered. The one that was removed first is forgotten first. */
const mostGone = 65_536;

/** Changes of the limits of managed keys. */
interface KeyLimitChange {
  /** Whether keys that are not in `put` are removed. */
  readonly whole: boolean;
  readonly put: Iterable<LimitedKey>;
  /** Ids of the removed keys. */
  readonly removed: Iterable<string>;
}

/**
 * The pools that apply now: those of the config and of managed keys. The config's take precedence. Each change returns
 * the changed pools as they last applied, which may be long ago: workers may still have units of a pool that was
 * removed for a while, and count them by its former limit.
 */
export class PoolsInForce {
  /** Null before the first config. */
  #ofConfig: PoolsByName | null = null;
  readonly #ofKeys = new WideMap<Pool>();
  /** Names of the pools of each managed key that has any. */
  readonly #namesOf = new WideMap<readonly string[]>();
  /** Removed pools as they last applied, in order of removal. */
  readonly #gone = new Map<string, Pool>();

  /** @param name may be that of a budget's period */
  get(name: string): Pool | undefined {
    return (this.#ofConfig && findPool(this.#ofConfig, name)) ?? findPool(this.#ofKeys, name);
  }

  /**
   * Applies the changes from the former config to a new one. One config at a time.
   * @param now all pools of the config
   * @returns the argument of the owner's `reloadSteps`: the pools that have changed, as they last applied, the new ones,
   * and null for a removed one. Each applies as soon as it is yielded, and all others after the last one
   */
  *configSteps(now: PoolsByName): Steps<Iterable<Pool | null>> {
    const before = this.#ofConfig;
    const names: string[] = [];
    // At the start, no pool has been used.
    if (before !== null) {
      for (const { name, limit } of now.values()) {
        if (before.get(name)?.limit !== limit) names.push(name);
        yield;
      }
      for (const { name } of before.values()) {
        if (!now.has(name)) names.push(name);
        yield;
      }
    }
    return this.#putInForce(now, before ?? now, names);
  }

  *#putInForce(
    now: PoolsByName,
    before: PoolsByName,
    names: readonly string[],
  ): Generator<Pool | null, void, undefined> {
    for (const name of names) {
      const former = before.get(name) ?? this.#ofKeys.get(name) ?? this.#gone.get(name);
      const pool = now.get(name);
      if (pool === undefined) before.delete(name);
      else before.set(name, pool);
      yield this.#changed(name, former);
    }
    this.#ofConfig = now;
  }

  /**
   * Applies changes of managed keys. Its cost depends only on the size of the change.
   * @returns the pools that have changed, as they last applied, and the new ones
   */
  changeKeys(change: KeyLimitChange): Pool[] {
    const changed: Pool[] = [];
    const gone = new Set(change.whole ? this.#namesOf.keys() : change.removed);
    for (const key of change.put) {
      this.#putKey(key.id, poolsOfSubject(`key:${key.id}`, key), changed);
      gone.delete(key.id);
    }
    for (const id of gone) this.#putKey(id, [], changed);
    return changed;
  }

  #putKey(id: string, pools: readonly Pool[], changed: Pool[]): void {
    const own = new Map(pools.map((pool) => [pool.name, pool]));
    const names = [...own.keys()];
    for (const name of new Set([...(this.#namesOf.get(id) ?? []), ...names])) {
      const former = this.#ofKeys.get(name) ?? this.#gone.get(name);
      const pool = own.get(name);
      if (pool === undefined) this.#ofKeys.delete(name);
      else this.#ofKeys.set(name, pool);
      // The config's limits of a key take precedence.
      if (this.#ofConfig?.has(name)) continue;
      const change = this.#changed(name, former);
      if (change !== null) changed.push(change);
    }
    if (names.length === 0) this.#namesOf.delete(id);
    else this.#namesOf.set(id, names);
  }

  /**
   * Remembers a removed pool. Forgets one that is back.
   * @param former as it last applied, if ever
   * @returns the pool to report; null if it is unchanged or removed
   */
  #changed(name: string, former: Pool | undefined): Pool | null {
    const pool = this.#ofConfig?.get(name) ?? this.#ofKeys.get(name);
    this.#gone.delete(name);
    if (pool === undefined) {
      if (former !== undefined) this.#remember(former);
      return null;
    }
    if (former === undefined) return pool;
    return former.limit === pool.limit ? null : former;
  }

  #remember(pool: Pool): void {
    this.#gone.set(pool.name, pool);
    if (this.#gone.size <= mostGone) return;
    const [oldest] = this.#gone.keys();
    if (oldest !== undefined) this.#gone.delete(oldest);
  }
}
