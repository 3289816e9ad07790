import { existsSync } from 'node:fs';
import type { StoreSettings } from '../config/types.js';
import { createEmbeddedStore } from './embedded.js';
import type { OwnedRecords } from './owned.js';
import { createRedisStore } from './redis.js';
import { createRedisShares } from './redis-shares.js';
import type { ShareStore } from './shares.js';
import type { Ledger, Store } from './store.js';

/** A store with its ledgers, and the records of owners where it can have them: null in Redis. */
export type WholeStore = Store & Ledger & { readonly owned: OwnedRecords | null };

/** Makes the store that the config names. Its server or its disk need not be there yet. */
export function createStore(settings: StoreSettings): WholeStore {
  return settings.kind === 'embedded'
    ? createEmbeddedStore(settings)
    : { ...createRedisStore(settings), owned: null };
}

/** Whether something may have been stored: looking into a store that was never used would make its files. */
export function mayHoldAnything(settings: StoreSettings): boolean {
  return settings.kind !== 'embedded' || existsSync(settings.path);
}

/** Makes what hosts divide limits by; null for a store that one host has to itself. */
export function createShareStore(settings: StoreSettings): ShareStore | null {
  return settings.kind === 'embedded' ? null : createRedisShares(settings);
}

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
