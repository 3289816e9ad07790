import t, { test } from 'tap';
import { createRedisStore } from '../../src/store/redis.js';
import { testLedger } from '../suites/ledger.js';
import { redisSettings, testStore } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { noRedis, startRedisCluster } from '../support/redis.js';

const nodes = await startRedisCluster();
t.teardown(() => Promise.all((nodes ?? []).map((node) => node.stop())));

const ports = (nodes ?? []).map(({ port }) => port);
const settings = { ...redisSettings(ports), cluster: true };
const skip = nodes === null && noRedis;

testStore('redis cluster', { settings, skip, processes: false });
testLedger('redis cluster', { settings, skip, processes: false });

test('a node that is gone concerns its own records, until it is back', { skip }, async (t) => {
  const store = createRedisStore({ ...settings, timeoutMs: 2000 });
  t.teardown(() => store.close());
  const names = Array.from({ length: 30 }, (_, index) => `outage-${index}`);
  const outcomes = async (round: string) =>
    (await Promise.allSettled(names.map((name) => store.claim(`${round}:${name}`, 1000)))).map(
      ({ status }) => status,
    );
  t.same(new Set(await outcomes('up')), new Set(['fulfilled']));
  await nodes?.[0]?.crash();
  t.same(new Set(await outcomes('down')), new Set(['fulfilled', 'rejected']));
  await nodes?.[0]?.restart();
  let round = 0;
  await eventually(async () => {
    round += 1;
    return !(await outcomes(`back-${round}`)).includes('rejected');
  });
});
