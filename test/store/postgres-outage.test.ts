import { randomBytes } from 'node:crypto';
import { type Test, test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { createPostgresStore } from '../../src/store/postgres.js';
import { backOffBefore, type Store } from '../../src/store/store.js';
import { postgresSettings, unavailable } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../support/postgres.js';

const minuteMs = 60_000;
const timeoutMs = 400;
const skip = skipWithoutPostgres();

function open(t: Test, server: PostgresServer, change: object = {}): ReturnType<typeof createPostgresStore> {
  const store = createPostgresStore({ ...postgresSettings(server.port), ...change });
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
  const server = await postgresFor(t);
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
  const server = await postgresFor(t);
  await server.crash();
  const store = open(t, server);
  const error = await unavailable(t, store.create('tasks', 'a', '1', minuteMs));
  t.match(error?.cause, { code: 'ECONNREFUSED' });
  await server.restart();
  await eventually(() => works(store));
  t.equal(await store.create('tasks', 'a', '1', minuteMs), true);
});

test('a server that does not answer is given up in time, call by call', { skip }, async (t) => {
  const server = await postgresFor(t);
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

test('a server that became a standby is left for the one that its name leads to', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  await store.claim('a', minuteMs);
  const setReadOnly = (value: string) => {
    server.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
    server.query('SELECT pg_reload_conf()');
  };
  setReadOnly('on');
  const connections = () =>
    server.query(
      "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name = 'model-gateway'",
    );
  const before = connections();
  await eventually(async () => {
    const failure = await store.create('a', 'a', '', minuteMs).catch((error: unknown) => error);
    return failure instanceof GatewayError && /read-only/.test(String(failure.cause));
  });
  t.not(connections(), before, 'the connection has ended');
  setReadOnly('off');
  await eventually(() => works(store));
  await eventually(() => store.create('b', 'a', '', minuteMs).catch(() => false));
});

test('calls beyond the bound are refused at once', { skip }, async (t) => {
  const server = await postgresFor(t);
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
  const server = await postgresFor(t, { password: 'open-sesame' });
  for (const password of [null, 'wrong-sesame']) {
    const error = await unavailable(t, open(t, server, { password }).get('a', 'a'));
    t.match(String(error?.cause), /password/);
    t.notMatch(String(error?.cause), /sesame/);
  }
  const store = open(t, server, { password: 'open-sesame' });
  t.equal(await store.create('a', 'a', '1', minuteMs), true);
  t.equal((await store.get('a', 'a'))?.value, '1');
});

test('a closed store has no connection left', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  const ended = store.changes.listen(() => {});
  t.teardown(ended);
  await store.claim('a', minuteMs);
  const connected = () =>
    Number(server.query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'model-gateway'"));
  await eventually(() => connected() === 2);
  await store.close();
  await eventually(() => connected() === 0);
});

test('a process has as many connections as it may, whatever waits', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  await Promise.all(Array.from({ length: 500 }, (_, index) => store.create('a', `${index}`, '', minuteMs)));
  const count = server.query(
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'model-gateway'",
  );
  t.equal(count, '4');
});

test('a server without room for more connections is told as such, and used when it has some', {
  skip,
}, async (t) => {
  const server = await postgresFor(t, {
    settings: ['max_connections=8', 'superuser_reserved_connections=0'],
  });
  const stores = Array.from({ length: 12 }, () => open(t, server, { username: 'postgres' }));
  const made = await Promise.allSettled(stores.map((store) => store.claim('a', 1)));
  const refused = made.flatMap((each) => (each.status === 'rejected' ? [String(each.reason.cause)] : []));
  t.ok(
    refused.length > 0 && refused.every((cause) => /connection|clients/.test(cause)),
    JSON.stringify(refused),
  );
  await Promise.all(stores.slice(0, 10).map((store) => store.close()));
  for (const store of stores.slice(10)) await eventually(() => works(store));
});

test('a full disk is told by each change, what is there can be read, and it goes on when there is room', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  // Which no compression makes smaller.
  const value = randomBytes(48_000).toString('base64');
  await store.create('filling', 'first', value, minuteMs);
  server.limitFiles(2_000_000);
  const put = (id: number) => store.create('filling', `${id}`, value, minuteMs);
  let failure: unknown = null;
  for (let id = 0; failure === null; id += 1)
    failure = await put(id).then(
      () => null,
      (error: unknown) => error,
    );
  t.match(failure, { kind: 'store_unavailable', cause: /could not extend file/ });
  t.equal((await store.get('filling', 'first'))?.value, value);
  server.limitFiles(null);
  t.equal(await put(1000), true);
  t.equal((await store.get('filling', '1000'))?.value, value);
});

test('tables of a later version are left alone', { skip }, async (t) => {
  const server = await postgresFor(t);
  await open(t, server).get('a', 'a');
  server.query('INSERT INTO gateway.migrations (number) VALUES (1000)');
  const error = await unavailable(t, open(t, server).get('a', 'a'));
  t.match(String(error?.cause), /of form 1000/);
});

test('tables are made once by all who come at once', { skip }, async (t) => {
  const server = await postgresFor(t);
  const stores = Array.from({ length: 8 }, () => open(t, server));
  await Promise.all(stores.map((store) => store.get('a', 'a')));
  t.match(server.query('SELECT count(*), max(number) = count(*) FROM gateway.migrations'), /\|t$/);
});

test('settings by which a crash loses more are told', { skip }, async (t) => {
  const server = await postgresFor(t);
  // The servers of the tests write nothing through to the disk.
  const own = [/^fsync is off/, /^full_page_writes is off/];
  t.match(await open(t, server).risks(), own);
  server.query('ALTER SYSTEM SET synchronous_commit = off');
  server.query('SELECT pg_reload_conf()');
  const all = [...own, /^synchronous_commit is off/];
  await eventually(() => open(t, server).risks(), { fits: ({ length }) => length === 3 });
  t.match(await open(t, server).risks(), all);
});

test('who listens hears of changes, and that some were missed while the server was gone', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const [store, other] = [open(t, server), open(t, server)];
  await store.create('key-changes', 'first', '', minuteMs);
  const heard: (string | null)[] = [];
  store.changes.listen((collection) => void heard.push(collection));
  await eventually(() => heard.length === 1);
  await other.create('keys', 'a', '', minuteMs);
  await other.create('key-changes', 'a', '', minuteMs);
  await eventually(() => heard.length === 2);
  t.strictSame(heard, [null, 'key-changes']);
  await server.crash();
  await server.restart();
  await eventually(() => heard.length === 3);
  await eventually(() => works(other));
  const { revision = 0 } = (await other.get('key-changes', 'a')) ?? {};
  t.ok(await other.replace('key-changes', 'a', '1', revision, minuteMs));
  await eventually(() => heard.length === 4);
  t.strictSame(heard.slice(2), [null, 'key-changes']);
});

test('back-offs grow, differ, and stay bounded', async (t) => {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const backOff = backOffBefore(attempt);
    t.ok(backOff >= 25 && backOff <= 2000, `${backOff}`);
  }
  t.ok(backOffBefore(0) <= 50 && backOffBefore(100) >= 1000);
});

test('a user who does not own the tables, and a clock that is off, are told', { skip }, async (t) => {
  const server = await postgresFor(t);
  await open(t, server).get('a', 'a');
  server.query(
    `CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA gateway TO guest;
GRANT ALL ON ALL TABLES IN SCHEMA gateway TO guest`,
  );
  const store = open(t, server, { username: 'guest' });
  const isOwner = /does not own its tables/;
  t.ok((await store.risks()).some((risk) => isOwner.test(risk)));
  t.notOk((await open(t, server).risks()).some((risk) => isOwner.test(risk)));
  const { now } = Date;
  t.teardown(() => {
    Date.now = now;
  });
  Date.now = () => now() + 20 * 60_000;
  t.ok((await open(t, server).risks()).some((risk) => /clock of this host is 1[12]\d\d s off/.test(risk)));
});
