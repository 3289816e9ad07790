import type { Group, Key, Model } from './types.js';

/** What a key gets from its groups. */
type KeyShare = Pick<Key, 'models' | 'groupLimits' | 'groupBudgets' | 'priceFactor'>;

/**
 * Creates a function that resolves the groups of a key in one config. The same groups give the very same models, limits
 * and prices each time. Groups that the config does not have open no models.
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
      // A filtered map stays sorted.
      models: open.has('*') ? models : new Map([...models].filter(([name]) => open.has(name))),
      groupLimits: own.flatMap(({ name, limits }) => (limits === null ? [] : [{ group: name, limits }])),
      groupBudgets: own.flatMap(({ name, budget }) => (budget === null ? [] : [{ group: name, budget }])),
      priceFactor: factors.length === 0 ? 1 : Math.min(...factors),
    };
    shared.set(identity, made);
    return made;
  };
}
