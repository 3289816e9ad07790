import { Client } from 'pg';
import { type Test, test } from 'tap';
import { createPostgresStore } from '../../src/store/postgres.js';
import { readPostgres } from '../../src/store/postgres-dump.js';
import { clientConfig } from '../../src/store/postgres-link.js';
import { createPostgresShares } from '../../src/store/postgres-shares.js';
import { allLines, allSums, ledgerBatch } from '../suites/ledger.js';
import { sumTable } from '../suites/ledger-sums.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../support/postgres.js';

const skip = skipWithoutPostgres();
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

function open(t: Test, server: PostgresServer): ReturnType<typeof createPostgresStore> {
  const store = createPostgresStore(postgresSettings(server.port));
  t.teardown(() => store.close());
  return store;
}

/** A connection of somebody else, in whose transaction the test holds what it needs. */
async function openSession(t: Test, server: PostgresServer): Promise<Client> {
  const client = new Client(clientConfig(postgresSettings(server.port), 5000));
  client.on('error', () => {});
  await client.connect();
  t.teardown(() => client.end());
  await client.query('SET search_path TO gateway; SET client_min_messages TO warning; BEGIN');
  return client;
}

test('a new day begins while an export, or a backup, reads on', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  const now = Date.now();
  await store.append('usage', ledgerBatch({ lines: [{ at: now, value: 'today' }], lineTtlMs: 9 * dayMs }));
  const pages = readPostgres(postgresSettings(server.port));
  t.teardown(() => pages.return(undefined));
  for await (const page of { [Symbol.asyncIterator]: () => ({ next: () => pages.next() }) })
    if (page.some(({ type }) => type === 'line')) break;
  const tomorrow = { at: now + dayMs, value: 'tomorrow' };
  t.equal(
    await store.append('usage', ledgerBatch({ number: 2, lines: [tomorrow], lineTtlMs: 9 * dayMs })),
    true,
  );
  t.strictSame(
    (await allLines(store, 'usage')).map(({ value }) => value),
    ['today', 'tomorrow'],
  );
});

test('a day that somebody reads is dropped later, and the others at once', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  const now = Date.now();
  const lines = [4, 3, 0].map((days) => ({ at: now - days * dayMs, value: `${days}` }));
  await store.append('usage', ledgerBatch({ lines, lineTtlMs: 9 * dayMs }));
  await store.append('usage', ledgerBatch({ number: 2, lineTtlMs: 1.5 * dayMs }));
  const parts = () =>
    server.query("SELECT count(*) FROM pg_inherits WHERE inhparent = 'gateway.ledger_lines'::regclass");
  const last = server.query(
    'SELECT tableoid::regclass FROM gateway.ledger_lines ORDER BY at LIMIT 1 OFFSET 1',
  );
  const reader = await openSession(t, server);
  await reader.query(`SELECT * FROM ${last.replace('gateway.', '')}`);
  await store.sweep();
  t.equal(parts(), '2');
  await reader.query('COMMIT');
  await store.sweep();
  t.equal(parts(), '1');
});

test('batches go on while somebody else adds up sums', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  const append = (number: number) =>
    store.append(
      'usage',
      ledgerBatch({
        number,
        sums: sumTable(
          dayMs,
          Array.from({ length: 5000 }, (_, index) => ({ id: `${index}`, add: { calls: 1 } })),
        ),
      }),
    );
  await append(1);
  const other = await openSession(t, server);
  await other.query("SELECT pg_advisory_xact_lock('ledger_sums'::regclass::oid::bigint)");
  for (const number of [2, 3, 4, 5]) t.equal(await append(number), true);
  await store.sweep();
  await other.query('COMMIT');
  await store.sweep();
  t.equal(server.query('SELECT count(*) FROM gateway.ledger_sum_changes'), '0');
  t.strictSame((await allSums(store, 'usage', { limit: 5000 })).get('7'), { calls: 5 });
});

const asked = { limit: 100, held: 0, need: 100, least: 1, want: 100, blockMs: minuteMs };

test('a sweep of shares and hosts that lack units do not wait for each other', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  const shares = createPostgresShares(postgresSettings(server.port));
  t.teardown(() => shares.close());
  await store.get('none', 'none');
  await shares.exchange({ host: 'a', number: 1, leaseMs: minuteMs, pools: [{ ...asked, pool: 'p' }] });
  await shares.exchange({ host: 'b', number: 1, leaseMs: minuteMs, pools: [{ ...asked, pool: 'p' }] });
  server.query("UPDATE gateway.share_wishes SET until = now() - interval '1 second'");
  // One that has said the first half of what it has to say.
  const host = await openSession(t, server);
  await host.query(`SELECT exchange_shares('c', 1, 60000, 1000, '[["q", 9, 0, 1, 1, 1, 1000]]')`);
  const swept = store.sweep();
  const isWaiting = () =>
    server.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") === '1';
  await eventually(isWaiting);
  await host.query(`SELECT exchange_shares('b', 2, 60000, 1000, '[["p", 100, 0, 100, 1, 100, 1000]]')`);
  await host.query('COMMIT');
  await swept;
  t.equal(server.query('SELECT host FROM gateway.share_wishes'), 'b');
});

test('accounts that begin anew and a sweep that removes them do not wait for each other', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  const names = ['a', 'b'];
  for (const name of names)
    await store.accounts.reserve(name, { limit: 100, least: 1, want: 60, owed: 0, debt: null, ttlMs: dayMs });
  // The one that is locked last is swept first.
  server.query("UPDATE gateway.records SET expires_at = now() - ascii(id) * interval '1 second'");
  const host = await openSession(t, server);
  const reserve = (name: string) =>
    host.query('SELECT * FROM change_budgets($1, 1, 32)', [
      JSON.stringify([[name, name, 100, 1, 70, 0, 0, dayMs, null]]),
    ]);
  await reserve('a');
  const swept = store.sweep();
  const isWaiting = () =>
    server.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") === '1';
  await Promise.race([swept, eventually(isWaiting)]);
  await reserve('b');
  await host.query('COMMIT');
  await swept;
  t.strictSame(await Promise.all(names.map((name) => store.accounts.reservedOf(name))), [70, 70]);
});

test('a sweep goes past what somebody else holds', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  const ids = Array.from({ length: 2500 }, (_, index) => `${index}`);
  await store.append(
    'usage',
    ledgerBatch({
      sums: sumTable(
        dayMs,
        ids.map((id) => ({ id, add: { calls: 1 } })),
      ),
    }),
  );
  await store.sweep();
  await store.create('plain', 'a', '', dayMs);
  for (const table of ['ledger_sums', 'ledger_writers', 'records'])
    server.query(`UPDATE gateway.${table} SET expires_at = now() - interval '1 second'`);
  const other = await openSession(t, server);
  await other.query("SELECT 1 FROM ledger_sums WHERE id = '7' FOR UPDATE");
  await other.query('SELECT 1 FROM records FOR UPDATE');
  await store.sweep();
  const left = (table: string) => server.query(`SELECT count(*) FROM gateway.${table}`);
  t.strictSame(['ledger_sums', 'ledger_writers', 'records'].map(left), ['1', '0', '1']);
  await other.query('COMMIT');
  await store.sweep();
  t.strictSame(['ledger_sums', 'records'].map(left), ['0', '0']);
});
