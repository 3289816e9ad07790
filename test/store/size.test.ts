import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { createStore } from '../../src/store/create.js';
import { postgresSettings } from '../suites/store.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const minuteMs = 60_000;

test('the size of an embedded store is what its files take of the disk', async (t) => {
  const path = temporaryFolder(t);
  const store = createStore({ kind: 'embedded', path, taskDays: 30 });
  t.teardown(() => store.close());
  const before = (await store.size()) ?? -1;
  mkdirSync(join(path, 'ledgers'));
  writeFileSync(join(path, 'ledgers', 'data.mdb'), Buffer.alloc(1_000_000, 1));
  const after = (await store.size()) ?? -1;
  t.ok(before >= 0 && after - before >= 1_000_000 && after - before < 1_100_000, `${before} ${after}`);
});

test('an embedded store that was not made has no size', async (t) => {
  const path = join(temporaryFolder(t), 'none');
  const store = createStore({ kind: 'embedded', path, taskDays: 30 });
  t.teardown(() => store.close());
  t.equal(await store.size(), null);
});

test('the size of a store in PostgreSQL is that of its tables', {
  skip: skipWithoutPostgres(),
}, async (t) => {
  const server = await postgresFor(t);
  const store = createStore(postgresSettings(server.port));
  t.teardown(() => store.close());
  const before = (await store.size()) ?? -1;
  const value = 'ab'.repeat(500);
  await Promise.all(
    Array.from({ length: 500 }, (_, id) => store.create('tasks', `${id}`, `${value}${id}`, minuteMs)),
  );
  server.query('CREATE TABLE public.of_others AS SELECT * FROM gateway.records');
  const after = (await store.size()) ?? -1;
  t.ok(before > 0 && after - before >= 500_000 && after - before < 1_000_000, `${before} ${after}`);
});
