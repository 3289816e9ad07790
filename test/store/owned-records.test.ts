import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { test } from 'tap';
import { createEmbeddedStore } from '../../src/store/embedded.js';
import { openBase } from '../../src/store/embedded-base.js';
import { createPostgresStore } from '../../src/store/postgres.js';
import { testOwned } from '../suites/owned.js';
import { postgresSettings, unavailable } from '../suites/store.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const mostBytes = 1_000_000;

/** What the indexes and sums hold, which has to agree whatever has happened. */
function agreement(path: string): { count: number; sum: number } {
  const base = openBase(open, path);
  const { values, byOwner, byTime, byName, sums } = base.owned();
  const counted = new Map<string, number>();
  const all = '00';
  for (const { key, value } of values.getRange({})) {
    const owner = key.subarray(0, 32).toString('hex');
    for (const of of [owner, all]) counted.set(of, (counted.get(of) ?? 0) + value.readDoubleBE(8));
  }
  const told = new Map(
    [...sums.getRange({})].map(({ key, value }) => [key.toString('hex'), value.readDoubleBE(0)]),
  );
  const result = { count: values.getCount(), sum: counted.get(all) ?? 0 };
  const agrees =
    byOwner.getCount() === result.count &&
    byTime.getCount() === result.count &&
    byName.getCount() === result.count &&
    [...told].sort().join() === [...counted].sort().join();
  base.close();
  if (!agrees) throw new Error('the indexes of what owners keep do not agree');
  return result;
}

function expiriesIn(path: string): Map<string, number> {
  const base = openBase(open, path);
  const read = [...base.owned().values.getRange({})].map(({ value }): [string, number] => [
    value.toString('utf8', 16),
    value.readDoubleBE(0),
  ]);
  base.close();
  return new Map(read);
}

testOwned('embedded', {
  skip: false,
  async open(t) {
    const path = temporaryFolder(t);
    const [store, other] = [createEmbeddedStore({ path }), createEmbeddedStore({ path })];
    t.teardown(() => Promise.all([store.close(), other.close()]));
    return {
      settings: { kind: 'embedded', path, taskDays: 7 },
      owned: store.owned,
      other: other.owned,
      sweep: () => store.sweep(),
      agreement: async () => agreement(path),
      expiries: async () => expiriesIn(path),
    };
  },
});

testOwned('postgres', {
  skip: skipWithoutPostgres(),
  async open(t) {
    const server = await postgresFor(t);
    const settings = postgresSettings(server.port);
    const [store, other] = [createPostgresStore(settings), createPostgresStore(settings)];
    t.teardown(() => Promise.all([store.close(), other.close()]));
    const numbers = (sql: string): number[] => server.query(sql).split('|').map(Number);
    return {
      settings,
      owned: store.owned,
      other: other.owned,
      sweep: () => store.sweep(),
      async agreement() {
        const [count = 0, sum = 0] = numbers(
          'SELECT count(*), coalesce(sum(bytes), 0) FROM gateway.owned_records',
        );
        const [owners, all] = numbers(
          'SELECT (SELECT coalesce(sum(bytes), 0) FROM gateway.owned_bytes), (SELECT sum(bytes) FROM gateway.owned_totals)',
        );
        if (owners !== sum || all !== sum) throw new Error('what owners keep does not agree with its sums');
        return { count, sum };
      },
      async expiries() {
        const rows = server.query(
          "SELECT value || '|' || (extract(epoch FROM expires_at) * 1000)::bigint FROM gateway.owned_records",
        );
        return new Map(
          rows
            .split('\n')
            .map((row): [string, number] => [row.split('|')[0] ?? '', Number(row.split('|')[1])]),
        );
      },
    };
  },
});

test('looking makes no files of its own, and a closed store refuses', async (t) => {
  const path = temporaryFolder(t);
  const store = createEmbeddedStore({ path });
  await store.owned.find('k', ['a'], mostBytes);
  await store.sweep();
  t.notOk(existsSync(join(path, 'owned')));
  await store.close();
  await unavailable(t, store.owned.find('k', ['a'], mostBytes));
});
