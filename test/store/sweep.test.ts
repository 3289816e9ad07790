import { open } from 'lmdb';
import t, { test } from 'tap';
import { createEmbeddedStore } from '../../src/store/embedded.js';
import { openBase } from '../../src/store/embedded-base.js';
import { nameKey, readExpiryKey } from '../../src/store/record-format.js';
import { createRedisStore } from '../../src/store/redis.js';
import { redisSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { noRedis, startRedis } from '../support/redis.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const minuteMs = 60_000;

test('a sweep of the embedded store leaves nothing of what has expired', async (t) => {
  const path = temporaryFolder(t);
  const store = createEmbeddedStore({ path });
  const count = 700;
  const numbers = Array.from({ length: count }, (_, index) => `${index}`);
  await Promise.all(numbers.map((id) => store.create(id.endsWith('7') ? 'a' : 'a-b', id, id, 1)));
  await Promise.all(numbers.map((id) => store.claim(id, 1)));
  await store.create('a', 'kept', '', minuteMs);
  await store.create('b', 'moved', '', 1);
  await store.create('c', 'swept', '', 1);
  await store.claim('kept', minuteMs);
  await eventually(async () => (await store.get('c', 'swept')) === null);
  t.equal(await store.create('b', 'moved', 'again', minuteMs), true);
  await store.sweep();
  await store.close();

  const { records, claims, close } = openBase(open, path);
  const keys = [...records.expiry.getKeys()].map(readExpiryKey);
  t.same(
    keys.map(({ collection, name }) => [collection, name]),
    [
      ['a', nameKey('kept')],
      ['b', nameKey('moved')],
    ],
  );
  t.equal(records.records.getCount(), 2);
  t.equal(claims.getCount(), 1);
  close();
});

const server = await startRedis();
t.teardown(() => server?.stop());
const skip = server === null && noRedis;

test('a sweep of Redis takes from its lists what expired long ago, and Redis the rest', {
  skip,
}, async (t) => {
  if (server === null) throw new Error(noRedis);
  const store = createRedisStore(redisSettings([server.port]));
  t.teardown(() => store.close());
  await store.create('tasks', 'short', '', 20);
  await store.create('tasks', 'long', '', minuteMs);
  await store.claim('poll', minuteMs);
  await server.command('ZADD', 'test:index:tasks', '1', 'ancient');
  await eventually(async () => (await store.get('tasks', 'short')) === null);
  await store.sweep();
  t.match(
    await server.command('ZRANGE', 'test:index:tasks', '0', '-1'),
    /^\*2\r\n\$5\r\nshort\r\n\$4\r\nlong\r\n/,
  );
  for (const key of ['test:record:tasks:long', 'test:claim:poll']) {
    const [, left = ''] = /^:(\d+)/.exec(await server.command('PTTL', key)) ?? [];
    t.ok(Number(left) > 0 && Number(left) <= minuteMs, `${key} goes by itself`);
  }
  t.match(await server.command('DBSIZE'), /^:4\r\n/, 'two lists, a record and a claim');
});
