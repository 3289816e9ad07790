import { existsSync } from 'node:fs';
import type { StoreSettings } from '../config/types.js';
import { createEmbeddedStore } from './embedded.js';
import { createRedisStore } from './redis.js';
import { createRedisShares } from './redis-shares.js';
import type { ShareStore } from './shares.js';
import type { Ledger, Store } from './store.js';

/** Makes the store, with its ledgers, that the config names. Its server or its disk need not be there yet. */
export function createStore(settings: StoreSettings): Store & Ledger {
  return settings.kind === 'embedded' ? createEmbeddedStore(settings) : createRedisStore(settings);
}

/** Whether something may have been stored: looking into a store that was never used would make its files. */
export function mayHoldAnything(settings: StoreSettings): boolean {
  return settings.kind !== 'embedded' || existsSync(settings.path);
}

/** Makes what hosts divide limits by; null for a store that one host has to itself. */
export function createShareStore(settings: StoreSettings): ShareStore | null {
  return settings.kind === 'embedded' ? null : createRedisShares(settings);
}
