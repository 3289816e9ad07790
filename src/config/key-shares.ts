import type { Group, Key, Model } from './types.js';

/** What keys have from their groups. */
export type KeyShare = Pick<Key, 'models' | 'groupLimits'>;

/**
 * Says what lists of groups mean in one config; the same list means the very same models and limits each time. Groups
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
    const open = new Set(names.flatMap((name) => opened.get(name) ?? []));
    const made: KeyShare = {
      // A filter of what is sorted stays so.
      models: open.has('*') ? models : new Map([...models].filter(([name]) => open.has(name))),
      groupLimits: groups.flatMap(({ name, limits }) =>
        limits !== null && names.includes(name) ? [{ group: name, limits }] : [],
      ),
    };
    shared.set(identity, made);
    return made;
  };
}
