import type { StoreSettings } from '../config/types.js';
import { createEmbeddedStore } from './embedded.js';
import { createRedisStore } from './redis.js';
import type { Store } from './store.js';

/** Makes the store that the config names. Its server or its disk need not be there yet. */
export function createStore(settings: StoreSettings): Store {
  return settings.kind === 'embedded' ? createEmbeddedStore(settings) : createRedisStore(settings);
}
