import { batchMark, checkBatch, checkSumRange, withinSafe, writerTtlMs } from './ledger-format.js';
import { clockSkewMs, milliseconds, type RedisLink, type SendRedis, textsOf } from './redis-link.js';
import { expiryOf } from './revision.js';
import type { Ledger, LedgerBatch, LedgerLine, LedgerSums, LinePage, SumPage } from './store.js';

interface RedisLedger extends Ledger {
  /** Removes what has expired and does not go by itself. */
  sweep(): Promise<void>;
}

/** What one step of a sweep removes at most. */
const mostSwept = 1000;
/** Hex digits of a place in a batch. */
const placeDigits = 8;

/**
 * Ledgers in Redis. All keys of one ledger have the same hash tag, so that a script can change them at once.
 *
 * Lines stand in a sorted set by their time, each behind the mark of its batch and its place there, which make it
 * unique. A sum is a hash, and its id stands in two sorted sets: one by the id, one by the time of its expiry.
 */
export function createRedisLedger(link: RedisLink, prefix: string): RedisLedger {
  const ledgers = `${prefix}:ledgers`;
  const registered = new Set<string>();

  const sweepLedger = async (ledger: string): Promise<void> => {
    const { lines, retention, sums, expiry } = keysOf(prefix, ledger);
    let swept = mostSwept;
    while (swept >= mostSwept) {
      const reply = await link.call(async (send) => {
        const linesEnd = `(${firstKept(await send(retention, ['GET', retention]))}`;
        const sumsEnd = `${Date.now() - clockSkewMs}`;
        const keys = [lines, sums, expiry];
        return send(lines, ['EVAL', sweepScript, '3', ...keys, linesEnd, sumsEnd, `${mostSwept}`]);
      });
      swept = Number(reply);
    }
  };

  return {
    async append(ledger, batch) {
      checkBatch(batch);
      return link.call(async (send) => {
        if (!registered.has(ledger)) {
          await send(ledgers, ['SADD', ledgers, ledger]);
          registered.add(ledger);
        }
        const { tag, command } = appendCommand(prefix, ledger, batch);
        return (await send(tag, command)) === 1;
      });
    },
    readLines: (ledger, range, limit, from) =>
      link.call(async (send) => {
        const { lines, retention } = keysOf(prefix, ledger);
        const kept = firstKept(await send(retention, ['GET', retention]));
        return readLinePage(send, lines, { ...range, from: Math.max(range.from, kept) }, { limit, from });
      }),
    async readSums(ledger, range, limit, from) {
      checkSumRange(range);
      return link.call((send) => readSumPage(send, keysOf(prefix, ledger), range, { limit, from }));
    },
    async sweep() {
      const names = await link.call((send) => send(ledgers, ['SMEMBERS', ledgers]));
      for (const ledger of textsOf(names)) await sweepLedger(ledger);
    },
  };
}

interface LedgerKeys {
  readonly lines: string;
  readonly retention: string;
  readonly sums: string;
  readonly expiry: string;
  writer(name: string): string;
  sum(id: string): string;
}

function keysOf(prefix: string, ledger: string): LedgerKeys {
  const tag = `${prefix}:ledger:{${ledger}}`;
  return {
    lines: `${tag}:lines`,
    retention: `${tag}:retention`,
    sums: `${tag}:sums`,
    expiry: `${tag}:expiry`,
    writer: (name) => `${tag}:writer:${name}`,
    sum: (id) => `${tag}:sum:${id}`,
  };
}

function appendCommand(
  prefix: string,
  ledger: string,
  batch: LedgerBatch,
): { readonly tag: string; readonly command: readonly string[] } {
  const names = keysOf(prefix, ledger);
  const now = Date.now();
  const mark = batchMark(batch).toString('hex');
  const keys = [names.writer(batch.writer), names.lines, names.retention, names.sums, names.expiry];
  const values = [
    `${batch.number}`,
    `${writerTtlMs}`,
    milliseconds(batch.lineTtlMs),
    `${batch.lines.length}`,
    `${batch.sums.ids.length}`,
  ];
  for (const [index, { at, value }] of batch.lines.entries()) {
    values.push(`${at}`, `${mark}${index.toString(16).padStart(placeDigits, '0')}${value}`);
  }
  const { sums } = batch;
  const [ttl, expiresAt] = [milliseconds(sums.ttlMs), `${expiryOf(sums.ttlMs, now)}`];
  for (const [row, id] of sums.ids.entries()) {
    const numbers = numbersOf(sums, row);
    keys.push(names.sum(id));
    values.push(id, ttl, expiresAt, `${numbers.length / 2}`, ...numbers);
  }
  return { tag: names.lines, command: ['EVAL', appendScript, `${keys.length}`, ...keys, ...values] };
}

/** The names and numbers of a row, in turn, but for zeros. */
function numbersOf({ names, values }: LedgerSums, row: number): string[] {
  return names.flatMap((name, column) => {
    const value = values[row * names.length + column] as number;
    return value === 0 ? [] : [name, `${value}`];
  });
}

/** The first time that is still kept, by the retention of a ledger, or 0 where nothing was said. */
function firstKept(retention: unknown): number {
  return typeof retention === 'string' ? Math.max(0, Date.now() - Number(retention) + 1) : 0;
}

interface Turn {
  readonly limit: number;
  readonly from: string | null;
}

/** Mark and place, with which each line in the set begins. */
const headLength = 16 + placeDigits;

/** A page begins behind `time:head` of the last line before. */
async function readLinePage(
  send: SendRedis,
  key: string,
  range: { readonly from: number; readonly until: number },
  { limit, from }: Turn,
): Promise<LinePage> {
  const colon = from?.indexOf(':') ?? 0;
  const after = from === null ? -1 : Number(from.slice(0, colon));
  const head = from === null ? '' : from.slice(colon + 1);
  const start = `${Math.max(range.from, after)}`;
  const end = Number.isFinite(range.until) ? `(${range.until}` : '+inf';
  const lines: LedgerLine[] = [];
  // Lines of the millisecond in which the page before ended come again, and are passed over.
  for (let offset = 0; ; offset += limit) {
    const window = ['BYSCORE', 'LIMIT', `${offset}`, `${limit}`, 'WITHSCORES'];
    const reply = textsOf(await send(key, ['ZRANGE', key, start, end, ...window]));
    for (let index = 0; index + 1 < reply.length; index += 2) {
      const [member = '', score = ''] = reply.slice(index, index + 2);
      const at = Number(score);
      const own = member.slice(0, headLength);
      if (at === after && own <= head) continue;
      lines.push({ at, value: member.slice(headLength) });
      if (lines.length === limit) return { lines, next: `${at}:${own}` };
    }
    if (reply.length < limit * 2) return { lines, next: null };
  }
}

/** A page begins behind the id of the last sum before. */
async function readSumPage(
  send: SendRedis,
  names: LedgerKeys,
  range: { readonly from: string; readonly until: string | null },
  { limit, from }: Turn,
): Promise<SumPage> {
  const start = from === null ? `[${range.from}` : `(${from}`;
  const end = range.until === null ? '+' : `(${range.until}`;
  const page = ['BYLEX', 'LIMIT', '0', `${limit}`];
  const ids = textsOf(await send(names.sums, ['ZRANGE', names.sums, start, end, ...page]));
  const sums = await Promise.all(
    ids.map(async (id) => {
      const values = textsOf(await send(names.sum(id), ['HGETALL', names.sum(id)]));
      return values.length === 0 ? [] : [{ id, values: readValues(values) }];
    }),
  );
  return { sums: sums.flat(), next: ids.length === limit ? (ids.at(-1) ?? null) : null };
}

function readValues(pairs: readonly string[]): Readonly<Record<string, number>> {
  const values: [string, number][] = [];
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    values.push([pairs[index] ?? '', withinSafe(Number(pairs[index + 1]))]);
  }
  return Object.fromEntries(values);
}

/**
 * Takes a batch in one step, and gives 1, or 0 when it was taken before.
 * KEYS: what was last taken from the writer, lines, retention, ids of sums, expiry of sums, then each sum.
 * ARGV: number of the batch, how long the writer is remembered, how long lines are kept, how many lines and how many
 * sums there are; for each line its time and itself; for each sum its id, its time to live, the time of its expiry,
 * how many numbers it has, and these by name. Times to live are in milliseconds.
 *
 * A number that passes 64 bits stays as it is: an error halfway would leave half of a batch.
 */
const appendScript = `
if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local at = 6
local behind = at + 2 * tonumber(ARGV[4])
while at < behind do
  local stop = math.min(at + 1000, behind)
  redis.call('ZADD', KEYS[2], unpack(ARGV, at, stop - 1))
  at = stop
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[3])
for sum = 1, tonumber(ARGV[5]) do
  local key, id, ttl, count = KEYS[5 + sum], ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 3])
  for field = at + 4, at + 2 + 2 * count, 2 do
    redis.pcall('HINCRBY', key, ARGV[field], ARGV[field + 1])
  end
  if tonumber(ttl) > redis.call('PTTL', key) then redis.call('PEXPIRE', key, ttl) end
  redis.call('ZADD', KEYS[4], '0', id)
  redis.call('ZADD', KEYS[5], 'GT', ARGV[at + 2], id)
  at = at + 4 + 2 * count
end
return 1`;

/**
 * Removes lines and sums that have expired, and gives how many there were of that kind of which there were more.
 * KEYS: lines, ids of sums, expiry of sums. ARGV: bounds of their times, and how many of each are removed at most.
 */
const sweepScript = `
local most = tonumber(ARGV[3])
local lines = math.min(redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1]), most)
if lines > 0 then redis.call('ZREMRANGEBYRANK', KEYS[1], '0', lines - 1) end
local ids = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[2], 'LIMIT', '0', ARGV[3])
if #ids > 0 then
  redis.call('ZREM', KEYS[2], unpack(ids))
  redis.call('ZREM', KEYS[3], unpack(ids))
end
return math.max(lines, #ids)`;
