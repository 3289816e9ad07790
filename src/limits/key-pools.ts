import type { Pool } from './kinds.js';
import { allPools, findPool, type LimitedParts } from './pools.js';

type LimitedKey = LimitedParts['keys'] extends Iterable<infer Key> ? Key : never;

/** How keys that come and go have changed. */
export interface KeyLimitChange {
  /** What is not in `put` is gone. */
  readonly whole: boolean;
  readonly put: Iterable<LimitedKey>;
  /** Ids of those that are gone. */
  readonly removed: Iterable<string>;
}

/** The pools of keys that come and go, by name. */
export interface KeyPools {
  get(name: string): Pool | undefined;
  /** Costs no more than the change is long. */
  apply(change: KeyLimitChange): void;
}

export function createKeyPools(): KeyPools {
  const pools = new Map<string, Pool>();
  /** Names of its pools, of every key that has some. */
  const namesOf = new Map<string, readonly string[]>();

  const remove = (id: string): void => {
    for (const name of namesOf.get(id) ?? []) pools.delete(name);
    namesOf.delete(id);
  };
  const put = (key: LimitedKey): void => {
    remove(key.id);
    const own = allPools({ keys: [key], groups: [], models: [] });
    if (own.size === 0) return;
    for (const [name, pool] of own) pools.set(name, pool);
    namesOf.set(key.id, [...own.keys()]);
  };

  return {
    get: (name) => findPool(pools, name),
    apply(change) {
      if (change.whole) for (const id of [...namesOf.keys()]) remove(id);
      for (const id of change.removed) remove(id);
      for (const key of change.put) put(key);
    },
  };
}
