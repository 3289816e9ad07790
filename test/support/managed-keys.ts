import { createManagedKeySet, type ManagedKeySet } from '../../src/keys/key-set.js';

/** The managed keys of a gateway that has none. */
export function noManagedKeys(): ManagedKeySet {
  const set = createManagedKeySet();
  set.apply({ whole: true, put: [], removed: [], more: false });
  return set;
}
