import { type Test, test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { createPostgresStore } from '../../src/store/postgres.js';
import { ledgerBatch } from '../suites/ledger.js';
import { sumTable } from '../suites/ledger-sums.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { pgBouncerFor, skipWithoutPgBouncer } from '../support/pgbouncer.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';

const skip = skipWithoutPostgres() || skipWithoutPgBouncer();
const minuteMs = 60_000;

function open(t: Test, port: number): ReturnType<typeof createPostgresStore> {
  const store = createPostgresStore(postgresSettings(port));
  t.teardown(() => store.close());
  return store;
}

for (const [mode, said] of [
  ['transaction', /pool_mode = session/],
  ['statement', /statement pooling/],
] as const)
  test(`a pooler that changes connections with each ${mode} is refused, and nothing is made behind it`, {
    skip,
  }, async (t) => {
    const server = await postgresFor(t);
    const store = open(t, await pgBouncerFor(t, server.port, mode));
    const asked = [store.get('a', 'b'), store.sweep(), store.accounts.reservedOf('a')];
    for (const each of await Promise.allSettled(asked)) {
      const error: unknown = each.status === 'rejected' ? each.reason : null;
      t.ok(error instanceof GatewayError && error.kind === 'store_unavailable');
      t.match(error instanceof GatewayError ? String(error.cause) : '', said);
    }
    const tables = "SELECT count(*) FROM pg_tables WHERE schemaname IN ('gateway', 'public')";
    t.equal(server.query(tables), '0');
  });

test('behind a pooler that keeps a connection for each session all works', { skip }, async (t) => {
  const server = await postgresFor(t);
  const port = await pgBouncerFor(t, server.port, 'session');
  const [one, other] = [open(t, port), open(t, port)];
  const heard: (string | null)[] = [];
  one.changes.listen((collection) => heard.push(collection));
  await eventually(() => heard.length === 1);
  t.equal(await one.create('key-changes', 'a', 'value', minuteMs), true);
  await eventually(() => heard.includes('key-changes'));
  const records = await Promise.all(Array.from({ length: 20 }, () => other.get('key-changes', 'a')));
  t.ok(records.every((record) => record?.value === 'value'));
  const sums = sumTable(minuteMs, [{ id: 'all', add: { calls: 1 } }]);
  t.equal(await one.append('usage', ledgerBatch({ sums, lines: [{ at: Date.now(), value: 'line' }] })), true);
  t.equal((await other.readSums('usage', { from: '', until: null }, 1, null)).sums[0]?.values.calls, 1);
  const want = { limit: 10, least: 1, want: 4, owed: 0, debt: null, ttlMs: minuteMs };
  t.equal(await one.accounts.reserve('a', want), 4);
  t.equal(await other.accounts.reservedOf('a'), 4);
  await one.sweep();
});
