import type { ConfigFiles } from './files.js';
import { parseRedisUrl, type RedisAddress } from './redis-url.js';
import type { ConfigFile } from './schema.js';
import type { StoreSettings } from './types.js';

/** What a config file need not say of its store. */
export const storeDefaults = { path: './data', prefix: 'gw', timeoutMs: 2000, taskDays: 7 } as const;

/**
 * Fills in the defaults of a store that passed every check.
 * @throws Error for one that did not
 */
export function resolveStore(store: NonNullable<ConfigFile['store']>, files: ConfigFiles): StoreSettings {
  const taskDays = store.taskDays ?? storeDefaults.taskDays;
  if (store.kind === 'embedded') {
    return { kind: 'embedded', path: files.absolute(store.path ?? storeDefaults.path), taskDays };
  }
  const addresses = (store.cluster ?? [store.url ?? '']).map(addressOf);
  const [first] = addresses;
  if (first === undefined) throw new Error('the store has no server');
  return {
    kind: 'redis',
    nodes: addresses.map(({ host, port }) => ({ host, port })),
    cluster: store.cluster !== undefined,
    tls: first.tls,
    username: first.username,
    password: first.password,
    database: first.database,
    prefix: store.prefix ?? storeDefaults.prefix,
    timeoutMs: store.timeoutMs ?? storeDefaults.timeoutMs,
    taskDays,
  };
}

function addressOf(url: string): RedisAddress {
  const address = parseRedisUrl(url);
  if ('problem' in address) throw new Error(`the URL of the store ${address.problem}`);
  return address;
}
