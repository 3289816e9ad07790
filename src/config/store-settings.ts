import type { ConfigFiles } from './files.js';
import type { ConfigFile } from './schema.js';
import type { PostgresStoreSettings, StoreSettings } from './types.js';

/** What a config file need not say of its store. */
export const storeDefaults = { path: './data', schema: 'gateway', timeoutMs: 2000, taskDays: 7 } as const;

/**
 * Fills in the defaults of a store that passed every check.
 * @throws Error for one that did not
 */
export function resolveStore(store: NonNullable<ConfigFile['store']>, files: ConfigFiles): StoreSettings {
  const taskDays = store.taskDays ?? storeDefaults.taskDays;
  if (store.kind === 'embedded') {
    return { kind: 'embedded', path: files.absolute(store.path ?? storeDefaults.path), taskDays };
  }
  const address = parsePostgresUrl(store.url ?? '');
  if ('problem' in address) throw new Error(`the URL of the store ${address.problem}`);
  return {
    kind: 'postgres',
    ...address,
    schema: store.schema ?? storeDefaults.schema,
    timeoutMs: store.timeoutMs ?? storeDefaults.timeoutMs,
    taskDays,
  };
}

/** Where a database is, and how to sign in there. */
type PostgresAddress = Pick<
  PostgresStoreSettings,
  'host' | 'port' | 'database' | 'username' | 'password' | 'tls'
>;

const sslModes = new Map<string, PostgresStoreSettings['tls']>([
  ['disable', 'off'],
  ['require', 'on'],
  ['verify-full', 'verified'],
]);

/**
 * Reads `postgres://user:password@host:port/database`, with `?sslmode=disable`, `require` or `verify-full`, or
 * `postgres://user@/database?host=/folder` for a socket
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). The text may hold a password, so
 * nothing of it is repeated.
 * @returns the address with its defaults filled in, or what is wrong
 */
export function parsePostgresUrl(text: string): PostgresAddress | { readonly problem: string } {
  const [, rest] = /^postgres(?:ql)?:(\/\/[^\s\\]+)$/i.exec(text) ?? [];
  if (rest === undefined) return { problem: 'must be a postgres:// URL' };
  let url: URL;
  let username: string;
  let password: string;
  let database: string;
  try {
    // A URL of a scheme that it knows: in others a host may be missing, and has its letters as they are.
    url = new URL(`http:${rest.replace(/^(\/\/(?:[^/?#]*@)?)(?=[/?#]|$)/, '$1localhost')}`);
    username = decodeURIComponent(url.username);
    password = decodeURIComponent(url.password);
    database = decodeURIComponent(url.pathname.slice(1));
  } catch {
    return { problem: 'is not a valid URL' };
  }
  if (username === '') return { problem: 'names no user' };
  if (database.includes('/')) return { problem: 'may have no path but the name of a database' };
  if (text.includes('#')) return { problem: 'may not hold a fragment' };
  const { sslmode = 'disable', host = null, ...others } = Object.fromEntries(url.searchParams);
  if (Object.keys(others).length > 0) return { problem: 'may hold no parameters but sslmode and host' };
  const tls = sslModes.get(sslmode);
  if (tls === undefined) return { problem: `must have an sslmode of ${[...sslModes.keys()].join(', ')}` };
  if (host !== null && !host.startsWith('/'))
    return { problem: 'may name as host the folder of a socket alone' };
  return {
    host: host ?? url.hostname.replace(/^\[|\]$/g, ''),
    port: portOf(url, rest),
    database: database === '' ? username : database,
    username,
    password: password === '' ? null : password,
    tls,
  };
}

/** The port that is left out of what was read is that of HTTP. */
function portOf(url: URL, rest: string): number {
  if (url.port !== '') return Number(url.port);
  return /^\/\/[^/?#]*:80(?:[/?#]|$)/.test(rest) ? 80 : 5432;
}
