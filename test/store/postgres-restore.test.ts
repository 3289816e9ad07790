import { type Test, test } from 'tap';
import { createPostgresStore } from '../../src/store/postgres.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../support/postgres.js';

const skip = skipWithoutPostgres();
const ttlMs = 60 * 60_000;
const total = 1000;

function open(t: Test, server: PostgresServer): ReturnType<typeof createPostgresStore> {
  const store = createPostgresStore(postgresSettings(server.port));
  t.teardown(() => store.close());
  return store;
}

const reserve = (
  { accounts }: ReturnType<typeof createPostgresStore>,
  account: string,
  want: number,
): Promise<number> => accounts.reserve(account, { limit: total, least: 1, want, owed: 0, debt: null, ttlMs });

/** What is reserved of accounts, as `account|units`. */
const reserved = (server: PostgresServer): string =>
  server.query('SELECT budget, reserved_nano_usd FROM gateway.budgets ORDER BY 1');

test('a process that finds its server older than it was tells what was reserved before it reserves more', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const [one, other] = [open(t, server), open(t, server)];
  await reserve(one, 'used', 100);
  const dump = server.dump('gateway');
  await reserve(one, 'used', 300);
  await reserve(other, 'used', 200);
  await other.accounts.giveBack('used', 50, ttlMs);
  await reserve(one, 'new', 70);
  server.restore('gateway', dump);
  t.equal(await reserve(one, 'other', 10), 10);
  // The other one may have looked by itself meanwhile.
  t.match(reserved(server), /^new\|70\nother\|10\nused\|(400|550)$/, 'as far as it is known');
  t.equal(await reserve(other, 'used', total), total - 550, 'the greater one holds');
  t.equal(await reserve(one, 'used', 1), 0);
});

test('one that asks nothing finds out, too', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  await reserve(store, 'used', 100);
  const dump = server.dump('gateway');
  await reserve(store, 'used', 300);
  server.restore('gateway', dump);
  await eventually(() => reserved(server) === 'used|400');
  await store.accounts.giveBack('used', 150, ttlMs);
  t.equal(reserved(server), 'used|250', 'and what is given back later goes back');
});

test('what cannot be read, and what is more, stays as it is', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, server);
  await store.sweep();
  const write = (account: string, value: string) =>
    server.query(`INSERT INTO gateway.records
VALUES ('budgets', '${account}', '${account}', '${value}', 1, now() + interval '1 hour')`);
  write('damaged', '{}');
  write('more', '{"version":1,"reserved":101,"debts":["a"]}');
  write('less', '{"version":1,"reserved":99,"debts":["a"]}');
  const dump = server.dump('gateway');
  server.query('DELETE FROM gateway.records');
  for (const account of ['damaged', 'more', 'less']) await reserve(store, account, 100);
  server.restore('gateway', dump);
  await reserve(store, 'another', 1);
  t.equal(reserved(server), 'another|1\ndamaged|\nless|100\nmore|101');
  t.equal(
    server.query("SELECT value::jsonb->'debts' FROM gateway.records WHERE id = 'less'"),
    '["a"]',
    'with the names of what was owed',
  );
});
