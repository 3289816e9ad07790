import type { Key } from '../config/types.js';
import { WideMap } from '../wire/wide-map.js';
import type { ActiveKey, KeyChange } from './managed-key.js';

/** A hash of a managed key: each key has one, and more for a while after rotations. */
export interface KeyEntry {
  readonly key: ActiveKey;
  readonly hash: string;
  /** Unix milliseconds, or null for never. For a former hash, at most the end of its grace. */
  readonly expiresAt: number | null;
  /** False once the entry was removed from its set; a holder of an entry checks this before each use. */
  readonly isLive: boolean;
}

/** The managed keys of a process, by hash. It outlives configs; a `KeyResolver` resolves the keys' groups. */
export interface ManagedKeySet {
  /** The number of keys, not of hashes. */
  readonly size: number;
  /** False until all keys were received once: until then a key that is not found may exist. */
  readonly isComplete: boolean;
  find(hash: string): KeyEntry | null;
  /**
   * Applies a change atomically: no lookup sees a part of it. The cost is linear in the change, unless it is `whole`.
   * Expired hashes are left out.
   */
  apply(change: KeyChange): void;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/**
 * Creates an empty set. Of two keys with the same hash, which only a forged store can contain, the first one wins.
 * @param now Unix milliseconds; default the system clock
 */
export function createManagedKeySet(now: () => number = Date.now): ManagedKeySet {
  const byHash = new WideMap<Mutable<KeyEntry>>();
  const byId = new WideMap<readonly Mutable<KeyEntry>[]>();
  let isComplete = false;
  let hasBegun = false;

  const remove = (id: string): void => {
    for (const entry of byId.get(id) ?? []) {
      entry.isLive = false;
      byHash.delete(entry.hash);
    }
    byId.delete(id);
  };

  const put = (key: ActiveKey, at: number): void => {
    remove(key.id);
    const entries = entriesOf(key, at).filter((entry) => {
      if (byHash.has(entry.hash)) return false;
      byHash.set(entry.hash, entry);
      return true;
    });
    if (entries.length > 0) byId.set(key.id, entries);
  };

  return {
    get size() {
      return byId.size;
    },
    get isComplete() {
      return isComplete;
    },
    find: (hash) => byHash.get(hash) ?? null,
    apply({ whole, put: changed, removed, more }) {
      if (whole) for (const id of [...byId.keys()]) remove(id);
      for (const id of removed) remove(id);
      const at = now();
      for (const key of changed) put(key, at);
      hasBegun ||= whole;
      if (whole) isComplete = !more;
      else if (hasBegun && !more) isComplete = true;
    },
  };
}

/** Converts an entry to the key under which a call runs. */
export type KeyResolver = (entry: KeyEntry) => Key;

/** The members that keys inherit from their groups in one config. */
type KeyShares = (
  groups: readonly string[],
) => Pick<Key, 'models' | 'groupLimits' | 'groupBudgets' | 'priceFactor'>;

/** Creates the resolver for the config of `shareOf`. */
export function createKeyResolver(shareOf: KeyShares): KeyResolver {
  return ({ key, hash, expiresAt }) => ({
    id: key.id,
    hash,
    groups: key.groups,
    expiresAt,
    limits: key.limits,
    budget: key.budget,
    mayRoute: key.mayRoute,
    pools: null,
    ...shareOf(key.groups),
  });
}

function entriesOf(key: ActiveKey, now: number): Mutable<KeyEntry>[] {
  const last = key.expiresAt ?? Number.POSITIVE_INFINITY;
  const entries = [
    { key, hash: key.hash, expiresAt: key.expiresAt, isLive: true },
    ...key.former.map(({ hash, until }) => ({ key, hash, expiresAt: Math.min(until, last), isLive: true })),
  ];
  return entries.filter(({ expiresAt }) => expiresAt === null || expiresAt > now);
}
