import type { RedisStoreSettings } from '../config/types.js';
import { createRedisLink, textsOf } from './redis-link.js';
import type { HostAnswer, HostStatement, ShareStore } from './shares.js';
import { storeUnavailable } from './unavailable.js';

/** A host that waits longer than this is better off alone. */
const longestWaitMs = 1000;
/** How long anything is kept of a host, or of a pool that no host speaks of: longer than any share is blocked. */
const keptMs = 600_000;
/** How long it is remembered that a host lacks units of a pool. */
const wishMs = 1000;

/**
 * Shares in Redis, over a connection of their own: what goes to the store beside them must not hold them up. All keys
 * have the same hash tag, so that one script changes what a host has to say at once.
 */
export function createRedisShares(settings: RedisStoreSettings): ShareStore {
  const timeoutMs = Math.min(settings.timeoutMs, longestWaitMs);
  const link = createRedisLink({ ...settings, timeoutMs });
  const tag = `${settings.prefix}:{limits}`;
  const hosts = `${tag}:hosts`;
  return {
    async exchange(statement) {
      const keys = [hosts, `${tag}:wanted`, ...statement.pools.map(({ pool }) => `${tag}:pool:${pool}`)];
      const command = ['EVAL', exchangeScript, `${keys.length}`, ...keys, ...valuesOf(statement)];
      const reply = await link.call((send) => send(hosts, command));
      return answerOf(reply);
    },
    close: () => link.close(),
  };
}

function valuesOf({ host, number, leaseMs, pools }: HostStatement): string[] {
  const values = [host, `${number}`, `${leaseMs}`, `${keptMs}`, `${wishMs}`];
  for (const { pool, limit, held, need, least, want, blockMs } of pools) {
    values.push(pool, `${limit}`, `${held}`, `${need}`, `${least}`, `${want}`, `${blockMs}`);
  }
  return values;
}

function answerOf(reply: unknown): HostAnswer {
  if (!Array.isArray(reply)) throw storeUnavailable(new Error('a later statement of this host came first'));
  const [seen, granted, left, wanted] = reply as unknown[];
  const remains = numbersOf(left);
  return {
    seen: Number(seen),
    pools: numbersOf(granted).map((units, index) => ({ granted: units, left: remains[index] ?? 0 })),
    wanted: textsOf(wanted),
  };
}

function numbersOf(reply: unknown): number[] {
  return Array.isArray(reply) ? reply.map(Number) : [];
}

/**
 * Takes the statement of one host, and gives what was last seen of it, the grants, what is left of each pool, and the
 * pools that other hosts want; or nothing, where a later statement came first.
 * KEYS: hosts, wanted, then each pool. ARGV: host, number, lease, how long anything is kept, how long a wish lasts;
 * for each pool its name, limit, held, need, least, want, and how long a share is blocked. Times are in milliseconds,
 * and the time is that of the server.
 *
 * `hosts` has the number and the deadline of each host, a pool the units of each host, `wanted` the time at which each
 * wish `host pool` ends. A share is gone when its host's deadline is past by the time for which it is blocked.
 */
const exchangeScript = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local host, number, keptMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local function text(value) return string.format('%.0f', value) end

local deadlines, alive, seen = {}, 1, 0
local hosts = redis.call('HGETALL', KEYS[1])
for at = 1, #hosts, 2 do
  local last, deadline = string.match(hosts[at + 1], '^(%d+) (%d+)$')
  deadline = tonumber(deadline)
  if hosts[at] == host then seen = tonumber(last)
  elseif deadline + keptMs <= now then redis.call('HDEL', KEYS[1], hosts[at])
  else
    deadlines[hosts[at]] = deadline
    if deadline > now then alive = alive + 1 end
  end
end
if seen >= number then return false end
redis.call('HSET', KEYS[1], host, text(number) .. ' ' .. text(now + tonumber(ARGV[3])))
redis.call('PEXPIRE', KEYS[1], text(keptMs))

local granted, left = {}, {}
for index = 3, #KEYS do
  local key, at = KEYS[index], 6 + 7 * (index - 3)
  local limit, held, need = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local blockMs, others = tonumber(ARGV[at + 6]), 0
  local shares = redis.call('HGETALL', key)
  for field = 1, #shares, 2 do
    local name = shares[field]
    if name ~= host then
      if deadlines[name] == nil then
        -- What was known of this host is lost, and it may be alive: its time begins now.
        deadlines[name] = now
        redis.call('HSET', KEYS[1], name, '0 ' .. text(now))
      end
      if deadlines[name] + blockMs <= now then redis.call('HDEL', key, name)
      else others = others + tonumber(shares[field + 1]) end
    end
  end
  local free, grant = limit - others - held, 0
  if need > 0 and free >= tonumber(ARGV[at + 4]) then
    local spare = math.floor(free / (2 * alive))
    grant = math.min(free, math.max(need, math.min(tonumber(ARGV[at + 5]), spare)))
  end
  if held + grant > 0 then
    redis.call('HSET', key, host, text(held + grant))
    redis.call('PEXPIRE', key, text(keptMs))
  else redis.call('HDEL', key, host) end
  if (grant < need or free < 0) and others > 0 then
    redis.call('ZADD', KEYS[2], text(now + tonumber(ARGV[5])), host .. ' ' .. ARGV[at])
    redis.call('PEXPIRE', KEYS[2], text(keptMs))
  end
  granted[#granted + 1] = grant
  left[#left + 1] = free - grant
end

local wanted = {}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now))
for _, wish in ipairs(redis.call('ZREVRANGE', KEYS[2], '0', '999')) do
  local space = string.find(wish, ' ', 1, true)
  if string.sub(wish, 1, space - 1) ~= host then wanted[#wanted + 1] = string.sub(wish, space + 1) end
end
return {seen, granted, left, wanted}`;
