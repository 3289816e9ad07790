import { open } from 'lmdb';
import { test } from 'tap';
import { createEmbeddedStore } from '../../src/store/embedded.js';
import { openBase } from '../../src/store/embedded-base.js';
import { createPostgresStore } from '../../src/store/postgres.js';
import { nameKey, readExpiryKey } from '../../src/store/record-format.js';
import { ledgerBatch } from '../suites/ledger.js';
import { sumTable } from '../suites/ledger-sums.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

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

test('a sweep of PostgreSQL leaves nothing of what has expired', {
  skip: skipWithoutPostgres(),
}, async (t) => {
  const server = await postgresFor(t);
  const store = createPostgresStore(postgresSettings(server.port));
  t.teardown(() => store.close());
  const numbers = Array.from({ length: 1100 }, (_, index) => `${index}`);
  await Promise.all(numbers.map((id) => store.create(id.endsWith('7') ? 'a' : 'a-b', id, id, 1)));
  await Promise.all(numbers.slice(0, 100).map((id) => store.claim(id, 1)));
  await store.create('a', 'kept', '', minuteMs);
  await store.claim('kept', minuteMs);
  const old = ledgerBatch({
    lines: [{ at: Date.now() - 3 * dayMs, value: 'old' }],
    lineTtlMs: dayMs,
    sums: sumTable(1, [{ id: 'short', add: { n: 1 } }]),
  });
  await store.append('swept', old);
  const kept = {
    lines: [{ at: Date.now(), value: 'new' }],
    sums: sumTable(minuteMs, [{ id: 'long', add: { n: 1 } }]),
  };
  await store.append('swept', ledgerBatch({ ...kept, number: 2 }));
  await eventually(async () => (await store.get('a', '7')) === null);
  await store.sweep();
  const held = (table: string, column: string) =>
    server.query(`SELECT ${column} FROM gateway.${table} ORDER BY 1`);
  t.equal(held('records', 'id'), 'kept');
  t.equal(held('claims', 'key'), 'kept');
  t.equal(held('ledger_lines', 'value'), 'new');
  t.equal(held('ledger_sums', 'id'), 'long');
  t.equal(held('ledger_sum_changes', 'id'), '', 'what was to be added is');
  const days = server.query(
    "SELECT count(*) FROM pg_inherits WHERE inhparent = 'gateway.ledger_lines'::regclass",
  );
  t.equal(days, '1', 'the table of a day is dropped with its last line');
});
