import { type Test, test } from 'tap';
import type { PostgresStoreSettings } from '../../src/config/types.js';
import { createPostgresStore } from '../../src/store/postgres.js';
import { allLines, allSums, ledgerBatch } from '../suites/ledger.js';
import { sumTable } from '../suites/ledger-sums.js';
import { postgresSettings, unavailable } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres, standbyFor } from '../support/postgres.js';
import { startRelay } from '../support/relay.js';

const skip = skipWithoutPostgres();
const minuteMs = 60_000;

function open(t: Test, ports: readonly number[]): ReturnType<typeof createPostgresStore> {
  const [first = 0, ...more] = ports;
  const others = more.map((port) => ({ host: '127.0.0.1', port }));
  const settings: PostgresStoreSettings = { ...postgresSettings(first), others };
  const store = createPostgresStore(settings);
  t.teardown(() => store.close());
  return store;
}

function batch(number: number) {
  return ledgerBatch({
    number,
    lines: [{ at: Date.now(), value: `${number}` }],
    sums: sumTable(minuteMs, [{ id: 'all', add: { calls: 1 } }]),
  });
}

/** Resolves when a standby has what its server has written until now. */
async function caughtUp(server: PostgresServer, standby: PostgresServer): Promise<void> {
  const written = server.query('SELECT pg_current_wal_lsn()');
  await eventually(() => standby.query(`SELECT pg_last_wal_replay_lsn() >= '${written}'`) === 't');
}

test('a standby is never used, and neither is a place where nobody is', { skip }, async (t) => {
  const server = await postgresFor(t);
  const standby = await standbyFor(t, server.port);
  const store = open(t, [await freePort(), standby.port, server.port]);
  t.equal(await store.create('plain', 'a', '1', minuteMs), true);
  t.equal((await store.get('plain', 'a'))?.value, '1');
  const used = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'model-gateway'";
  t.equal(standby.query(used), '0');
  const alone = open(t, [standby.port]);
  const error = await unavailable(t, alone.get('plain', 'a'));
  t.match(error?.cause, { message: 'the server is read-only, as a standby is' });
});

test('a standby that lags takes over with what it has, and whoever writes goes on there', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const relay = await startRelay(t, server.port);
  const standby = await standbyFor(t, relay.port);
  const store = open(t, [server.port, standby.port]);
  const heard: (string | null)[] = [];
  t.teardown(store.changes.listen((collection) => void heard.push(collection)));
  await eventually(() => heard.length === 1);
  await store.create('plain', 'kept', '1', minuteMs);
  await store.append('usage', batch(1));
  await caughtUp(server, standby);
  relay.cut();
  await store.create('plain', 'lost', '1', minuteMs);
  await store.append('usage', batch(2));
  await server.crash();
  await unavailable(t, store.append('usage', batch(3)));
  standby.query('SELECT pg_promote()');
  // Of batch 3 nobody knows whether it was taken, and so it is sent again.
  await eventually(() => store.append('usage', batch(3)).catch(() => false));
  t.equal((await store.get('plain', 'kept'))?.value, '1');
  t.equal(await store.get('plain', 'lost'), null, 'what the database has lost is lost');
  t.strictSame(
    (await allLines(store, 'usage')).map(({ value }) => value),
    ['1', '3'],
  );
  t.strictSame((await allSums(store, 'usage')).get('all'), { calls: 2 });
  await eventually(() => heard.length === 2);
  t.strictSame(heard, [null, null], 'who listens is told that changes may have been missed');
  t.equal(await store.append('usage', batch(3)), false);
});
