import type { Key } from '../config/types.js';
import { WideMap } from '../wire/wide-map.js';
import type { ActiveKey, KeyChange } from './managed-key.js';

/** One hash under which a managed key is known: each has one, and more for a while after rotations. */
export interface KeyEntry {
  readonly key: ActiveKey;
  readonly hash: string;
  /** Unix milliseconds, or null for never. For a former hash, no later than its grace. */
  readonly expiresAt: number | null;
  /** False as soon as the entry is not in its set any more: whoever keeps one looks here before each use. */
  readonly isLive: boolean;
}

/** The managed keys of a process, by hash. It outlives configs: what their groups mean is resolved elsewhere. */
export interface ManagedKeySet {
  /** Keys, not hashes. */
  readonly size: number;
  /** False until everything was told once: till then a key that is not found may be there all the same. */
  readonly isComplete: boolean;
  find(hash: string): KeyEntry | null;
  /**
   * Takes over a change at once: no lookup sees a part of it. Costs no more than the change itself is long, unless it
   * is `whole`. What has expired by then is left out.
   */
  apply(change: KeyChange): void;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/**
 * Makes an empty set. Of two keys with the same hash, which only a forged store can have, the first one counts.
 * @param now Unix milliseconds; the clock of the system unless said otherwise
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
    apply({ whole, put: changed, removed, more = false }) {
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

/** Makes the key that a call runs under from an entry. */
export type KeyResolver = (entry: KeyEntry) => Key;

/** What keys have from their groups in one config, by the names of these. */
type KeyShares = (
  groups: readonly string[],
) => Pick<Key, 'models' | 'groupLimits' | 'groupBudgets' | 'priceFactor'>;

/** Resolves keys for the config that the shares are of. */
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
