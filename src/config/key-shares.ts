import type { Group, Key, Model } from './types.js';

/** What keys have from their groups. */
type KeyShare = Pick<Key, 'models' | 'groupLimits' | 'groupBudgets' | 'priceFactor'>;

/**
 * Says what lists of groups mean in one config; the same list means the very same models, limits and prices each time. Groups
 * that the config does not have open nothing.
 * @param models sorted by name
 */
export function createKeyShares(
  groups: readonly Group[],
  models: ReadonlyMap<string, Model>,
): (names: readonly string[]) => KeyShare {
  const opened = new Map(groups.map((group) => [group.name, group.models]));
  const shared = new Map<string, KeyShare>();

  return (names) => {
    const identity = JSON.stringify([...new Set(names)].sort());
    const known = shared.get(identity);
    if (known !== undefined) return known;
    const own = groups.filter(({ name }) => names.includes(name));
    const factors = own.flatMap(({ priceFactor }) => priceFactor ?? []);
    const open = new Set(names.flatMap((name) => opened.get(name) ?? []));
    const made: KeyShare = {
      // A filter of what is sorted stays so.
      models: open.has('*') ? models : new Map([...models].filter(([name]) => open.has(name))),
      groupLimits: own.flatMap(({ name, limits }) => (limits === null ? [] : [{ group: name, limits }])),
      groupBudgets: own.flatMap(({ name, budget }) => (budget === null ? [] : [{ group: name, budget }])),
      priceFactor: factors.length === 0 ? 1 : Math.min(...factors),
    };
    shared.set(identity, made);
    return made;
  };
}
