import type { StoreSettings } from '../config/types.js';
import { mayHoldAnything } from './create.js';
import type { Store } from './store.js';

/**
 * The same records for somebody who looks often and changes little: as long as nobody has stored anything, there is
 * nothing to read, and looking does not make the files of an embedded store.
 */
export function withoutMaking(store: Store, settings: StoreSettings): Store {
  let isMade = false;
  const isThere = (): boolean => {
    isMade ||= mayHoldAnything(settings);
    return isMade;
  };
  return {
    ...store,
    get: async (collection, id) => (isThere() ? store.get(collection, id) : null),
    list: async (...asked) => (isThere() ? store.list(...asked) : { records: [], next: null }),
  };
}
