import { type Test, test } from 'tap';
import { createRedisStore } from '../../src/store/redis.js';
import { pauseBefore } from '../../src/store/redis-link.js';
import type { Store } from '../../src/store/store.js';
import { redisSettings, unavailable } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { noRedis, type RedisServer, startRedis } from '../support/redis.js';

const minuteMs = 60_000;
const timeoutMs = 400;
const probe = await startRedis();
await probe?.stop();
const skip = probe === null && noRedis;

async function start(t: Test, args: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedis({ keep: true, args });
  if (server === null) throw new Error(noRedis);
  t.teardown(() => server.stop());
  return server;
}

function open(t: Test, server: RedisServer, change: object = {}): Store {
  const store = createRedisStore({ ...redisSettings([server.port]), ...change });
  t.teardown(() => store.close());
  return store;
}

async function works(store: Store): Promise<boolean> {
  try {
    await store.get('none', 'none');
    return true;
  } catch {
    return false;
  }
}

/** Milliseconds until a call was refused. */
async function refusedAfter(t: Test, call: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await unavailable(t, call());
  return performance.now() - start;
}

test('a server that goes is told by every call, and used again when it is back', { skip }, async (t) => {
  const server = await start(t);
  const store = open(t, server);
  t.equal(await store.create('tasks', 'a', '1', minuteMs), true);
  await server.crash();
  for (const call of [
    () => store.get('tasks', 'a'),
    () => store.create('tasks', 'b', '1', minuteMs),
    () => store.list('tasks', 1, null),
    () => store.claim('b', minuteMs),
    () => store.sweep(),
  ]) {
    t.ok((await refusedAfter(t, call)) < 1000);
  }
  await server.restart();
  await eventually(() => works(store));
  t.equal((await store.get('tasks', 'a'))?.value, '1');
  t.equal(await store.create('tasks', 'b', '1', minuteMs), true);
});

test('a store can be made before its server is there', { skip }, async (t) => {
  const server = await start(t);
  await server.crash();
  const store = open(t, server);
  const error = await unavailable(t, store.create('tasks', 'a', '1', minuteMs));
  t.match(error?.cause, { code: 'ECONNREFUSED' });
  await server.restart();
  await eventually(() => works(store));
  t.equal(await store.create('tasks', 'a', '1', minuteMs), true);
});

test('a server that does not answer is given up in time, call by call', { skip }, async (t) => {
  const server = await start(t);
  const store = open(t, server, { timeoutMs });
  await eventually(() => works(store));
  server.signal('SIGSTOP');
  const times = await Promise.all(
    Array.from({ length: 50 }, () => refusedAfter(t, () => store.claim('a', minuteMs))),
  );
  times.push(await refusedAfter(t, () => store.claim('a', minuteMs)));
  t.ok(
    times.every((ms) => ms >= timeoutMs - 1 && ms < timeoutMs * 4),
    `${times}`,
  );
  server.signal('SIGCONT');
  await eventually(() => works(store));
});

test('a server that became a replica is left for the one that its name leads to', { skip }, async (t) => {
  const server = await start(t);
  const store = open(t, server);
  await store.claim('a', minuteMs);
  const connections = async () =>
    Number(/total_connections_received:(\d+)/.exec(await server.command('INFO', 'stats'))?.[1]);
  await server.command('REPLICAOF', '127.0.0.1', '1');
  const before = await connections();
  t.match((await unavailable(t, store.claim('b', minuteMs)))?.cause, /READONLY/);
  // Each question has a connection of its own.
  let own = 0;
  await eventually(async () => {
    own += 1;
    return (await connections()) > before + own;
  });
  await server.command('REPLICAOF', 'NO', 'ONE');
  await eventually(() => works(store));
  t.equal(await store.claim('b', minuteMs), true);
});

test('calls beyond the bound are refused at once', { skip }, async (t) => {
  const server = await start(t);
  const store = open(t, server, { timeoutMs });
  await eventually(() => works(store));
  server.signal('SIGSTOP');
  const calls = Array.from({ length: 4096 }, () => store.claim('a', minuteMs));
  const error = await unavailable(t, store.claim('a', minuteMs));
  t.match(error?.cause, { message: '4096 calls of the store are under way' });
  t.ok((await Promise.allSettled(calls)).every(({ status }) => status === 'rejected'));
  server.signal('SIGCONT');
});

test('a password is used, and never told', { skip }, async (t) => {
  const server = await start(t, ['--requirepass', 'open-sesame']);
  for (const password of [null, 'wrong-sesame']) {
    const error = await unavailable(t, open(t, server, { password }).get('a', 'a'));
    t.match(String(error?.cause), password === null ? /NOAUTH/ : /WRONGPASS/);
    t.notMatch(String(error?.cause), /sesame/);
  }
  const store = open(t, server, { password: 'open-sesame', database: 3 });
  t.equal(await store.create('a', 'a', '1', minuteMs), true);
  t.equal((await store.get('a', 'a'))?.value, '1');
});

test('a closed store has no connection left', { skip }, async (t) => {
  const server = await start(t);
  const store = open(t, server);
  await store.claim('a', minuteMs);
  const connected = async () => /connected_clients:(\d+)/.exec(await server.command('INFO', 'clients'))?.[1];
  t.equal(await connected(), '2');
  await store.close();
  await eventually(async () => (await connected()) === '1');
});

test('pauses between attempts grow, differ, and stay bounded', async (t) => {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const pause = pauseBefore(attempt);
    t.ok(pause >= 25 && pause <= 2000, `${pause}`);
  }
  t.ok(pauseBefore(0) <= 50 && pauseBefore(100) >= 1000);
});
