import type { DumpEntry } from './dump.js';

/** Place of the data that earlier versions kept in Redis. */
export interface RedisPlace {
  /** `redis://` or `rediss://`. Several URLs are nodes of a cluster. */
  readonly urls: readonly string[];
  /** Prefix of every key, without the colon after it. */
  readonly prefix: string;
}

/** Sends a command, which may have only one key: the nodes of a cluster do not share a command. */
type Send = (key: string, ...command: string[]) => Promise<unknown>;

const pageSize = 500;
/** A line is preceded by the mark of its batch and its index there, in hexadecimal. */
const lineHeadLength = 24;
/** Data without expiry is kept for a hundred years. */
const foreverMs = 100 * 365 * 24 * 60 * 60 * 1000;

/**
 * Reads all that earlier versions kept in Redis or Valkey, in pages. A record is a string `revision:value`, and the
 * sorted set of its collection has its id. Lines of a ledger are in a sorted set by their time. A sum is a hash.
 */
export async function* readRedis({ urls, prefix }: RedisPlace): AsyncGenerator<readonly DumpEntry[]> {
  const { send, close } = await connect(urls);
  try {
    for (const collection of textsOf(
      await send(`${prefix}:collections`, 'SMEMBERS', `${prefix}:collections`),
    ))
      for await (const ids of members(send, `${prefix}:index:${collection}`))
        yield await present(ids.map(([id]) => recordEntry(send, prefix, collection, id)));
    for (const ledger of textsOf(await send(`${prefix}:ledgers`, 'SMEMBERS', `${prefix}:ledgers`)))
      yield* ledgerPages(send, prefix, ledger);
  } finally {
    await close();
  }
}

async function connect(urls: readonly string[]): Promise<{ send: Send; close: () => Promise<unknown> }> {
  const redis = await import('redis');
  const [url = ''] = urls;
  if (urls.length > 1) {
    const { username, password, protocol } = new URL(url);
    const cluster = redis.createCluster({
      RESP: 2,
      rootNodes: urls.map((each) => ({ url: each })),
      // For nodes that are only known from other nodes.
      defaults: {
        username: decodeURIComponent(username) || undefined,
        password: decodeURIComponent(password) || undefined,
        ...(protocol === 'rediss:' ? { socket: { tls: true as const } } : {}),
      },
    });
    cluster.on('error', () => {});
    await cluster.connect();
    return {
      send: (key, ...command) => cluster.sendCommand(key, true, command),
      close: async () => cluster.destroy(),
    };
  }
  const client = redis.createClient({ RESP: 2, url, socket: { reconnectStrategy: false } });
  client.on('error', () => {});
  await client.connect();
  return { send: (_key, ...command) => client.sendCommand(command), close: async () => client.destroy() };
}

async function recordEntry(
  send: Send,
  prefix: string,
  collection: string,
  id: string,
): Promise<DumpEntry | null> {
  const key = `${prefix}:record:${collection}:${id}`;
  const [text, expiresAt] = await Promise.all([send(key, 'GET', key), expiryOf(send, key)]);
  if (typeof text !== 'string') return null;
  const colon = text.indexOf(':');
  const revision = Number(text.slice(0, colon));
  return { type: 'record', collection, id, value: text.slice(colon + 1), revision, expiresAt };
}

async function* ledgerPages(
  send: Send,
  prefix: string,
  ledger: string,
): AsyncGenerator<readonly DumpEntry[]> {
  const tag = `${prefix}:ledger:{${ledger}}`;
  const retention = await send(`${tag}:retention`, 'GET', `${tag}:retention`);
  const lineTtlMs = typeof retention === 'string' ? Number(retention) : foreverMs;
  yield [{ type: 'ledger', ledger, lineTtlMs }];
  const kept = Date.now() - lineTtlMs;
  for await (const lines of members(send, `${tag}:lines`))
    yield lines.flatMap(([member, at]): DumpEntry[] =>
      at > kept ? [{ type: 'line', ledger, at, value: member.slice(lineHeadLength) }] : [],
    );
  for await (const ids of members(send, `${tag}:sums`))
    yield await present(
      ids.map(async ([id]): Promise<DumpEntry | null> => {
        const key = `${tag}:sum:${id}`;
        const [pairs, expiresAt] = await Promise.all([send(key, 'HGETALL', key), expiryOf(send, key)]);
        const values = valuesOf(textsOf(pairs));
        return Object.keys(values).length === 0 ? null : { type: 'sum', ledger, id, values, expiresAt };
      }),
    );
}

/** Reads pages of a sorted set, with the score of each member. */
async function* members(send: Send, key: string): AsyncGenerator<[member: string, score: number][]> {
  for (let from = 0; ; from += pageSize) {
    const reply = textsOf(await send(key, 'ZRANGE', key, `${from}`, `${from + pageSize - 1}`, 'WITHSCORES'));
    const page: [string, number][] = [];
    for (let at = 0; at + 1 < reply.length; at += 2) page.push([reply[at] ?? '', Number(reply[at + 1])]);
    if (page.length === 0) return;
    yield page;
  }
}

async function expiryOf(send: Send, key: string): Promise<number> {
  const left = Number(await send(key, 'PTTL', key));
  return Date.now() + (left < 0 ? foreverMs : left);
}

async function present(entries: readonly Promise<DumpEntry | null>[]): Promise<DumpEntry[]> {
  return (await Promise.all(entries)).filter((entry) => entry !== null);
}

function valuesOf(pairs: readonly string[]): Readonly<Record<string, number>> {
  const values: [string, number][] = [];
  for (let at = 0; at + 1 < pairs.length; at += 2) {
    const number = Number(pairs[at + 1]);
    const most = Number.MAX_SAFE_INTEGER;
    values.push([pairs[at] ?? '', Math.min(Math.max(number, -most), most)]);
  }
  return Object.fromEntries(values);
}

/** Returns the strings of a reply that is a list. */
function textsOf(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.filter((each): each is string => typeof each === 'string') : [];
}
