import type { StoreSettings } from '../config/types.js';
import { createEmbeddedStore } from './embedded.js';
import { createRedisStore } from './redis.js';
import type { Ledger, Store } from './store.js';

/** Makes the store, with its ledgers, that the config names. Its server or its disk need not be there yet. */
export function createStore(settings: StoreSettings): Store & Ledger {
  return settings.kind === 'embedded' ? createEmbeddedStore(settings) : createRedisStore(settings);
}
