import type { RedisStoreSettings } from '../config/types.js';
import { createRedisLink } from './redis-link.js';
import { exchangeScript } from './redis-shares-script.js';
import { textsOf } from './redis-values.js';
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
