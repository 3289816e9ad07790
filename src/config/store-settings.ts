import type { ConfigFiles } from './files.js';
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

/** Where a Redis server is, and how to sign in there. */
interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
}

/**
 * Reads `redis://user:password@host:port/database`, or `rediss://` for TLS. The text may hold a password, so nothing
 * of it is repeated.
 * @returns the address with its defaults filled in, or what is wrong
 */
export function parseRedisUrl(text: string): RedisAddress | { readonly problem: string } {
  if (!/^rediss?:\/\/[^\s\\]+$/i.test(text)) return { problem: 'must be a redis:// or rediss:// URL' };
  let url: URL;
  let username: string;
  let password: string;
  try {
    url = new URL(text);
    username = decodeURIComponent(url.username);
    password = decodeURIComponent(url.password);
  } catch {
    return { problem: 'is not a valid URL' };
  }
  if (url.hostname === '') return { problem: 'names no host' };
  if (text.includes('?')) return { problem: 'may not hold a query' };
  if (text.includes('#')) return { problem: 'may not hold a fragment' };
  const database = /^\/?$|^\/(\d{1,4})$/.exec(url.pathname);
  if (database === null) return { problem: 'may have no path but the number of a database' };
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 6379 : Number(url.port),
    tls: url.protocol === 'rediss:',
    username: username === '' ? null : username,
    password: password === '' ? null : password,
    database: Number(database[1] ?? 0),
  };
}
