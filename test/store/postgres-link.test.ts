import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Client } from 'pg';
import { type Test, test } from 'tap';
import type { PostgresStoreSettings } from '../../src/config/types.js';
import { clientConfig, PostgresLink } from '../../src/store/postgres-link.js';
import { postgresSettings, unavailable } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';

const skip = skipWithoutPostgres();
const one = { name: 'one', text: 'SELECT 1 AS one' };
const sleep = { name: 'sleep', text: 'SELECT pg_sleep(20)' };

function open(t: Test, port: number, timeoutMs = 5000): PostgresLink {
  const link = new PostgresLink({ settings: postgresSettings(port), connections: 1, timeoutMs });
  t.teardown(() => link.close());
  return link;
}

async function works(link: PostgresLink): Promise<boolean> {
  return link.ask(one, []).then(
    () => true,
    () => false,
  );
}

test('a server that dies during a call, or between two statements of one, is told by that call alone', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const link = open(t, server.port);
  const faults: unknown[] = [];
  const note = (fault: unknown) => void faults.push(fault);
  process.on('uncaughtException', note);
  t.teardown(() => process.off('uncaughtException', note));
  await link.ask(one, []);
  const isAsleep = () =>
    server.query("SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(20)'") === '1';
  const sleeping = unavailable(t, link.ask(sleep, []));
  await eventually(isAsleep);
  await server.crash();
  await sleeping;
  await server.restart();
  await eventually(() => works(link));
  await unavailable(
    t,
    link.call(async (ask) => {
      await ask(one, []);
      await server.crash();
      await new Promise((resolve) => setTimeout(resolve, 50));
      return ask(one, []);
    }),
  );
  t.strictSame(faults, []);
});

/** A way to a port on which nothing passes any more once the first connection has said this. */
async function startGulf(t: Test, port: number, said: string): Promise<number> {
  const sockets = new Set<Socket>();
  let isFirst = true;
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    const isSwallowed = isFirst;
    isFirst = false;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    near.on('data', (data) => {
      if (isSwallowed && data.includes(said)) near.removeAllListeners('data').resume();
      else far.write(data);
    });
    far.pipe(near);
  });
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('a server that is gone when a connection is made ready keeps no place', { skip }, async (t) => {
  const server = await postgresFor(t);
  const link = open(t, await startGulf(t, server.port, 'search_path'), 1500);
  await unavailable(t, link.ask(one, []));
  await eventually(() => works(link));
});

test('an answer that came in time counts, though the event loop was blocked until its time was over', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const timeoutMs = 2000;
  const link = open(t, server.port, timeoutMs);
  await eventually(() => works(link));
  const short = { name: 'short', text: 'SELECT pg_sleep(0.5)' };
  const isAnswered = () =>
    server.query(`SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query = '${short.text}'`) ===
    '1';
  const answered = link.call(async (ask) => {
    const answer = ask(short, []);
    // The statement leaves in this turn of the loop; until its time is over, there is no other.
    await new Promise((resolve) => setImmediate(resolve));
    const until = performance.now() + timeoutMs;
    while (performance.now() < until || !isAnswered())
      if (performance.now() > until + 60_000) throw new Error('the server did not answer');
    return answer;
  });
  t.equal((await answered).length, 1);
  t.ok(await works(link));
});

test('statements read what others have committed before, whatever the server begins transactions with', {
  skip,
}, async (t) => {
  const server = await postgresFor(t, { settings: ['default_transaction_isolation=repeatable read'] });
  const level = { name: 'level', text: "SELECT current_setting('transaction_isolation') AS level" };
  t.match(await open(t, server.port).ask(level, []), [{ level: 'read committed' }]);
});

test('a server that refuses every connection is not asked by every call', { skip }, async (t) => {
  const server = await postgresFor(t);
  await open(t, server.port).ask(one, []);
  server.query('INSERT INTO gateway.migrations (number) VALUES (1000)');
  let connections = 0;
  const way = createServer((near) => {
    connections += 1;
    const far = connect(server.port, '127.0.0.1');
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).pipe(near);
  });
  t.teardown(() => way.close());
  way.listen(0, '127.0.0.1');
  await once(way, 'listening');
  const link = open(t, (way.address() as AddressInfo).port);
  for (let count = 0; count < 50; count++) {
    const failure = await unavailable(t, link.ask(one, []));
    t.match(String(failure?.cause), /of form 1000/);
  }
  t.ok(connections < 25, `${connections} connections for 50 calls`);
});

test('a connection that a busy server does not let begin in time leaves those of other calls', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const others = [{ host: '127.0.0.1', port: await freePort() }];
  const settings: PostgresStoreSettings = { ...postgresSettings(server.port), others };
  const link = new PostgresLink({ settings, connections: 2, timeoutMs: 1000 });
  t.teardown(() => link.close());
  const process = { name: 'process', text: 'SELECT pg_backend_pid() AS pid' };
  const before = await link.ask(process, []);
  const opened = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'model-gateway'";
  // Keeps the only connection while another call needs one.
  let release = () => {};
  const held = link.call(
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
    100,
  );
  const session = new Client({
    ...clientConfig(postgresSettings(server.port), 5000),
    application_name: 'test',
  });
  t.teardown(() => session.end());
  await session.connect();
  await session.query('BEGIN; LOCK TABLE gateway.migrations IN ACCESS EXCLUSIVE MODE');
  await unavailable(t, link.ask(one, []));
  await eventually(() => server.query(opened) === '1');
  await session.query('ROLLBACK');
  release();
  await held;
  t.strictSame(await link.ask(process, []), before);
});
