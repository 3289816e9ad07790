import type { Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import type { Pool } from './pool.js';
import { findPool, type LimitedKey, type PoolsByName, poolsOfSubject } from './pools.js';

/** Pools that have gone and are remembered; the one that went longest ago is forgotten first. */
const mostGone = 65_536;

/** How keys that come and go have changed. */
interface KeyLimitChange {
  /** What is not in `put` is gone. */
  readonly whole: boolean;
  readonly put: Iterable<LimitedKey>;
  /** Ids of those that are gone. */
  readonly removed: Iterable<string>;
}

/**
 * The pools that hold at this moment: those of the config, and of keys that come and go beside it, of which the config's
 * win. Each change tells the pools that are others now as they were when they last held, and not only just before:
 * workers may have units of one that has gone for a while, and count them by the limit that it had.
 */
export class PoolsInForce {
  /** Null before the first config. */
  #ofConfig: PoolsByName | null = null;
  readonly #ofKeys = new WideMap<Pool>();
  /** Names of the pools of every key that comes and goes, and has some. */
  readonly #namesOf = new WideMap<readonly string[]>();
  /** As they were, in the order in which they went. */
  readonly #gone = new Map<string, Pool>();

  /** @param name may be that of a budget's period */
  get(name: string): Pool | undefined {
    return (this.#ofConfig && findPool(this.#ofConfig, name)) ?? findPool(this.#ofKeys, name);
  }

  /**
   * Takes what is another by a config from the one before it. One config at a time.
   * @param now all pools of the config
   * @returns as `reload` of the owner wants them: the pools that have changed, as they last held, and those that are new.
   *   Each is in force as soon as it is taken, all others behind the last one.
   */
  *configSteps(now: PoolsByName): Steps<Iterable<Pool>> {
    const before = this.#ofConfig;
    const names: string[] = [];
    // At the start nobody has used any.
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
  ): Generator<Pool, void, undefined> {
    for (const name of names) {
      const former = before.get(name) ?? this.#ofKeys.get(name) ?? this.#gone.get(name);
      const pool = now.get(name);
      if (pool === undefined) before.delete(name);
      else before.set(name, pool);
      const changed = this.#changed(name, former);
      if (changed !== null) yield changed;
    }
    this.#ofConfig = now;
  }

  /**
   * Takes what is another of the keys that come and go. Costs no more than the change is long.
   * @returns the pools that have changed, as they last held, and those that are new
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
      // What the config says of a key holds, whatever else is said of it.
      if (this.#ofConfig?.has(name)) continue;
      const told = this.#changed(name, former);
      if (told !== null) changed.push(told);
    }
    if (names.length === 0) this.#namesOf.delete(id);
    else this.#namesOf.set(id, names);
  }

  /**
   * Remembers a pool that has gone, and forgets it when it is back.
   * @param former as it last held, if ever
   * @returns what is told of it; null where it holds as before, or no more
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
