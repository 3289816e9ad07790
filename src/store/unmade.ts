import { existsSync } from 'node:fs';
import type { StoreSettings } from '../config/types.js';
import type { Store } from './store.js';

/**
 * The same records for somebody who looks often and changes little: as long as nobody has written anything, an
 * embedded store has no files, and whoever only reads does not make them.
 */
export function withoutMaking(store: Store, settings: StoreSettings): Store {
  if (settings.kind !== 'embedded') return store;
  let isMade = false;
  const isThere = (): boolean => {
    isMade ||= existsSync(settings.path);
    return isMade;
  };
  return {
    ...store,
    get: async (collection, id) => (isThere() ? store.get(collection, id) : null),
    list: async (collection, limit, from) =>
      isThere() ? store.list(collection, limit, from) : { records: [], next: null },
  };
}
