import { test } from 'tap';
import { createStore } from '../../src/store/create.js';
import { dayOf } from '../../src/usage/budget.js';
import { reportUsage } from '../../src/usage/queries.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../support/postgres.js';

const dayMs = 24 * 60 * 60 * 1000;
const keys = 5000;

/** Puts a sum for each key and day into a table that has sums. */
function fill(server: PostgresServer, table: string, days: readonly string[]): void {
  server.query(`INSERT INTO gateway.${table} (ledger, id, amounts, expires_at)
SELECT 'usage', day || '/nkey-' || key || '/nmodel', '{"calls": 1}', now() + interval '1 day'
FROM unnest('{${days.join()}}'::text[]) day, generate_series(1, ${keys}) key`);
}

/** Rows of tables of sums that were read so far, by whichever session has ended. */
function rowsRead(server: PostgresServer): number {
  return Number(
    server.query(`SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables
WHERE relname LIKE 'ledger_sum%'`),
  );
}

test('the usage of one key is read from its own rows, however many others have some', {
  skip: skipWithoutPostgres(),
}, async (t) => {
  const server = await postgresFor(t);
  const first = createStore(postgresSettings(server.port));
  await first.sweep();
  await first.close();
  const now = Date.now();
  const [lastDay, dayBefore] = [dayOf(now), dayOf(now - dayMs)];
  fill(server, 'ledger_sums', [lastDay, dayBefore]);
  fill(server, 'ledger_sum_changes', [lastDay, lastDay]);
  server.query('ANALYZE gateway.ledger_sums, gateway.ledger_sum_changes');
  const before = rowsRead(server);

  const store = createStore(postgresSettings(server.port));
  const firstDay = dayOf(now - 29 * dayMs);
  for (let key = 1; key <= 20; key++) {
    const { total } = await reportUsage(store, { firstDay, lastDay, keyId: `key-${key}`, groupBy: ['day'] });
    t.equal(total.calls, 4);
  }
  await store.close();
  // A session tells what it has read when it ends.
  await eventually(() => rowsRead(server) - before >= 80);
  t.ok(rowsRead(server) - before < keys);
});
