import type { ConfigFiles } from './files.js';
import { invalidUrl } from './problem.js';
import type { ConfigFile } from './schema.js';
import type { PostgresPlace, PostgresStoreSettings, StoreSettings } from './types.js';

/** Defaults of the store's settings. */
export const storeDefaults = { path: './data', schema: 'gateway', timeoutMs: 2000, taskDays: 7 } as const;

/**
 * Fills in the defaults of a store that passed every check.
 * @throws Error if it did not
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

/** Address of a database, with the credentials. */
type PostgresAddress = Pick<
  PostgresStoreSettings,
  'host' | 'port' | 'others' | 'database' | 'username' | 'password' | 'tls'
>;

const sslModes = new Map<string, PostgresStoreSettings['tls']>([
  ['disable', 'off'],
  ['require', 'on'],
  ['verify-full', 'verified'],
]);

/**
 * Parses `postgres://user:password@host:port/database`, with `?sslmode=disable`, `require` or `verify-full`, or
 * `postgres://user@/database?host=/folder` for a socket. Several hosts have commas between them
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). Problems do not repeat the text,
 * which may contain a password.
 * @returns the address with its defaults filled in, or a problem
 */
export function parsePostgresUrl(text: string): PostgresAddress | { readonly problem: string } {
  const [, rest] = /^postgres(?:ql)?:(\/\/[^\s\\]+)$/i.exec(text) ?? [];
  if (rest === undefined) return { problem: 'must be a postgres:// URL' };
  const [, user = '', hosts = '', behind = ''] = /^(\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/.exec(rest) ?? [];
  const [first = '', ...more] = hosts.split(',');
  const others = more.map(parsePlace);
  let url: URL;
  let username: string;
  let password: string;
  let database: string;
  try {
    // Parsed with a scheme that `URL` knows. With others, the host may be missing and is not normalized.
    url = new URL(`http:${user}${hosts === '' ? 'localhost' : first}${behind}`);
    username = decodeURIComponent(url.username);
    password = decodeURIComponent(url.password);
    database = decodeURIComponent(url.pathname.slice(1));
  } catch {
    return { problem: invalidUrl };
  }
  if (username === '') return { problem: 'names no user' };
  if (database.includes('/')) return { problem: 'may have no path but the name of a database' };
  if (text.includes('#')) return { problem: 'may not hold a fragment' };
  const { sslmode = 'disable', host = null, ...parameters } = Object.fromEntries(url.searchParams);
  const { target_session_attrs: session = 'read-write', ...unknown } = parameters;
  if (Object.keys(unknown).length > 0)
    return { problem: 'may hold no parameters but sslmode, host and target_session_attrs' };
  if (session !== 'read-write') return { problem: 'may have no target_session_attrs but read-write' };
  const tls = sslModes.get(sslmode);
  if (tls === undefined) return { problem: `must have an sslmode of ${[...sslModes.keys()].join(', ')}` };
  if (host !== null && !host.startsWith('/'))
    return { problem: 'may name as host the folder of a socket alone' };
  if (host !== null && others.length > 0) return { problem: 'may not name a socket beside several hosts' };
  const places = others.filter((place) => place !== null);
  if (places.length < others.length) return { problem: 'is not a valid URL' };
  return {
    host: host ?? hostOf(url),
    port: portOf(url, first),
    others: places,
    database: database === '' ? username : database,
    username,
    password: password === '' ? null : password,
    tls,
  };
}

/** @returns null if the text is not a host, with or without a port */
function parsePlace(text: string): PostgresPlace | null {
  try {
    const url = new URL(`http://${text}`);
    return url.host !== '' && url.pathname === '/' ? { host: hostOf(url), port: portOf(url, text) } : null;
  } catch {
    return null;
  }
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** `URL` omits port 80, the default of HTTP. */
function portOf(url: URL, host: string): number {
  if (url.port !== '') return Number(url.port);
  return host.endsWith(':80') ? 80 : 5432;
}
