import type { RedisStoreSettings } from '../config/types.js';
import { createRedisLedger } from './redis-ledger.js';
import { clockSkewMs, createRedisLink, milliseconds, type SendRedis, textsOf } from './redis-link.js';
import { expiryOf, firstRevision } from './revision.js';
import type { Ledger, ListOrder, Store, StoredPage, StoredRecord } from './store.js';

/**
 * Compares and sets in one step. KEYS: record. ARGV: `revision:` that it must begin with, the record as it is to be,
 * its time in milliseconds. Only the beginning is read, for a value may be long.
 */
const replaceScript = `if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;

/**
 * A store in Redis or Valkey, a single server or a cluster, for all gateways that name the same one.
 *
 * A record is a string `revision:value` with an expiry of its own, and stands in the sorted set of its collection by
 * the time of its expiry. Record and set may be on different nodes, so they are not changed at once: the set comes
 * first, and what it names may not be there (any more). Its scores only grow, else a change that fails would take a
 * record from the list that is still there.
 */
export function createRedisStore(settings: RedisStoreSettings): Store & Ledger {
  const link = createRedisLink(settings);
  const ledger = createRedisLedger(link, settings.prefix);
  const keys = keysUnder(settings.prefix);
  const registered = new Set<string>();

  const index = async (send: SendRedis, collection: string, id: string, ttlMs: number): Promise<void> => {
    if (!registered.has(collection)) {
      await send(keys.collections, ['SADD', keys.collections, collection]);
      registered.add(collection);
    }
    const key = keys.index(collection);
    await send(key, ['ZADD', key, 'GT', `${expiryOf(ttlMs, Date.now())}`, id]);
  };

  return {
    kind: 'redis',
    get: (collection, id) => link.call((send) => read(send, keys.record(collection, id))),
    create: (collection, id, value, ttlMs) =>
      link.call(async (send) => {
        await index(send, collection, id, ttlMs);
        const key = keys.record(collection, id);
        const text = `${firstRevision()}:${value}`;
        return (await send(key, ['SET', key, text, 'NX', 'PX', milliseconds(ttlMs)])) !== null;
      }),
    replace: (collection, id, value, revision, ttlMs) =>
      link.call(async (send) => {
        await index(send, collection, id, ttlMs);
        const key = keys.record(collection, id);
        const text = `${revision + 1}:${value}`;
        const command = ['EVAL', replaceScript, '1', key, `${revision}:`, text, milliseconds(ttlMs)];
        return (await send(key, command)) === 1;
      }),
    remove: (collection, id) =>
      link.call(async (send) => {
        const key = keys.record(collection, id);
        await send(key, ['DEL', key]);
        await send(keys.index(collection), ['ZREM', keys.index(collection), id]);
      }),
    list: (collection, limit, from, order = 'first-to-go') =>
      link.call(async (send): Promise<StoredPage> => {
        const { ids, next } = await readIndex(send, { key: keys.index(collection), limit, from, order });
        const records = await Promise.all(
          ids.map(async (id) => {
            const record = await read(send, keys.record(collection, id));
            return record === null ? [] : [{ id, ...record }];
          }),
        );
        return { records: records.flat(), next };
      }),
    claim: (name, ttlMs) =>
      link.call(async (send) => {
        const key = keys.claim(name);
        return (await send(key, ['SET', key, '1', 'NX', 'PX', milliseconds(ttlMs)])) !== null;
      }),
    append: ledger.append,
    readLines: ledger.readLines,
    readSums: ledger.readSums,
    // Redis removes records and claims by itself.
    async sweep() {
      await link.call(async (send) => {
        const until = `${Date.now() - clockSkewMs}`;
        for (const collection of textsOf(await send(keys.collections, ['SMEMBERS', keys.collections]))) {
          const key = keys.index(collection);
          await send(key, ['ZREMRANGEBYSCORE', key, '-inf', until]);
        }
      });
      await ledger.sweep();
    },
    close: () => link.close(),
  };
}

function keysUnder(prefix: string) {
  return {
    collections: `${prefix}:collections`,
    index: (collection: string) => `${prefix}:index:${collection}`,
    record: (collection: string, id: string) => `${prefix}:record:${collection}:${id}`,
    claim: (name: string) => `${prefix}:claim:${name}`,
  };
}

async function read(send: SendRedis, key: string): Promise<StoredRecord | null> {
  const text = await send(key, ['GET', key]);
  if (typeof text !== 'string') return null;
  const colon = text.indexOf(':');
  return { revision: Number(text.slice(0, colon)), value: text.slice(colon + 1) };
}

interface IndexPosition {
  readonly key: string;
  readonly limit: number;
  /** `score:id` of the last one before, or null. */
  readonly from: string | null;
  readonly order: ListOrder;
}

/** Reads a page of ids, sorted by score and those of one score by their bytes. */
async function readIndex(
  send: SendRedis,
  { key, limit, from, order }: IndexPosition,
): Promise<{ readonly ids: string[]; readonly next: string | null }> {
  const isBackward = order === 'last-to-go';
  const colon = from?.indexOf(':') ?? 0;
  const live = `${Date.now() - clockSkewMs}`;
  const score = from?.slice(0, colon) ?? (isBackward ? '+inf' : live);
  const id = from === null ? null : Buffer.from(from.slice(colon + 1));
  const range = isBackward ? [score, live, 'BYSCORE', 'REV'] : [score, '+inf', 'BYSCORE'];
  const ids: string[] = [];
  for (let offset = 0; ; offset += limit) {
    const window = ['LIMIT', `${offset}`, `${limit}`, 'WITHSCORES'];
    const reply = textsOf(await send(key, ['ZRANGE', key, ...range, ...window]));
    for (let at = 0; at + 1 < reply.length; at += 2) {
      const [member = '', memberScore = ''] = reply.slice(at, at + 2);
      if (memberScore === score && id !== null) {
        const distance = Buffer.from(member).compare(id);
        if (isBackward ? distance >= 0 : distance <= 0) continue;
      }
      ids.push(member);
      if (ids.length === limit) return { ids, next: `${memberScore}:${member}` };
    }
    if (reply.length < limit * 2) return { ids, next: null };
  }
}
