import t, { type Test, test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { createShareStore } from '../../src/store/create.js';
import { createRedisShares } from '../../src/store/redis-shares.js';
import type { HostStatement, ShareStore } from '../../src/store/shares.js';
import { testShares } from '../suites/shares.js';
import { redisSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { noRedis, startRedis, startRedisCluster } from '../support/redis.js';

const redis = await startRedis();
const nodes = await startRedisCluster();
t.teardown(() => Promise.all([redis, ...(nodes ?? [])].map((server) => server?.stop())));

const skip = redis === null && noRedis;
const single = redisSettings([redis?.port ?? 1]);
const cluster = { ...redisSettings((nodes ?? []).map(({ port }) => port)), cluster: true };
let count = 0;

for (const [name, settings] of [
  ['redis', single],
  ['redis cluster', cluster],
] as const) {
  testShares(name, {
    skip,
    async open(t: Test) {
      count += 1;
      const shares = createRedisShares({ ...settings, prefix: `test-${count}` });
      t.teardown(() => shares.close());
      await connected(shares);
      return {
        exchange: (statement) =>
          shares.exchange(statement).catch((error: unknown) => {
            if (/later statement/.test(String((error as Error).cause))) return null;
            throw error;
          }),
        pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      };
    },
  });
}

/** The first connection may take longer than a statement may. */
async function connected(shares: ShareStore): Promise<void> {
  let number = 0;
  await eventually(async () => {
    number += 1;
    const probe = shares.exchange({ host: 'probe', number, leaseMs: 0, pools: [] });
    return probe.then(
      () => true,
      () => false,
    );
  });
}

const empty: HostStatement = { host: 'a', number: 1, leaseMs: 1000, pools: [] };

test('keys have the prefix, and go by themselves', { skip }, async (t) => {
  const shares = createRedisShares({ ...single, prefix: 'own' });
  t.teardown(() => shares.close());
  await connected(shares);
  const pool = { pool: 'k', limit: 1, held: 0, need: 1, least: 1, want: 1, blockMs: 10 };
  await shares.exchange({ ...empty, pools: [pool] });
  await shares.exchange({ ...empty, host: 'b', pools: [pool] });
  for (const name of ['hosts', 'wanted', 'pool:k']) {
    const ttl = await redis?.command('PTTL', `own:{limits}:${name}`);
    t.ok(Number(ttl?.split(/\r?\n/)[0]?.slice(1)) > 1000, `${name}: ${ttl}`);
  }
});

test('a server that is not there is told as such, at once or within a second', { skip }, async (t) => {
  const shares = createRedisShares({ ...redisSettings([1]), timeoutMs: 60_000 });
  t.teardown(() => shares.close());
  const failure = await shares.exchange(empty).catch((error: unknown) => error);
  t.ok(failure instanceof GatewayError && failure.kind === 'store_unavailable', String(failure));
});

test('only a store that hosts share has shares', async (t) => {
  t.equal(createShareStore({ kind: 'embedded', path: '/nowhere', taskDays: 1 }), null);
});
