import { open } from 'lmdb';
import { test } from 'tap';
import { createEmbeddedStore } from '../../src/store/embedded.js';
import { openBase } from '../../src/store/embedded-base.js';
import { appendToSumLog, takeSumLog } from '../../src/store/sum-log.js';
import { allSums, ledgerBatch } from '../suites/ledger.js';
import { sumTable } from '../suites/ledger-sums.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const minuteMs = 60_000;

/** How many entries and records of sums there are. */
function held(folder: string): { entries: number; sums: number } {
  const base = openBase(open, folder);
  const { sumLog, sums } = base.ledgers();
  const counts = {
    entries: sumLog.getKeysCount(),
    sums: [...sums.records.getKeys()].filter((key) => key.includes('-sums')).length,
  };
  base.close();
  return counts;
}

test('what batches add is in the sums as soon as they are read, and once', async (t) => {
  const path = temporaryFolder(t);
  const store = createEmbeddedStore({ path });
  for (let number = 1; number <= 5; number++) {
    const sums = sumTable(minuteMs, [
      { id: 'all', add: { n: number } },
      { id: `of-${number % 2}`, add: { n: number, odd: 1 } },
    ]);
    await store.append('l', ledgerBatch({ number, sums }));
  }
  await store.append('other', ledgerBatch({ sums: sumTable(minuteMs, [{ id: 'all', add: { n: 1 } }]) }));
  await store.close();
  t.same(held(path), { entries: 6, sums: 0 }, 'a batch changes no sum');

  const next = createEmbeddedStore({ path });
  t.teardown(() => next.close());
  const expected = [
    ['all', { n: 15 }],
    ['of-0', { n: 6, odd: 2 }],
    ['of-1', { n: 9, odd: 3 }],
  ];
  t.same([...(await allSums(next, 'l', { limit: 1 }))], expected);
  t.same([...(await allSums(next, 'l'))], expected);
  t.same(held(path), { entries: 1, sums: 3 }, 'what nobody has read is still to be merged');
});

test('a log is merged before it is long', async (t) => {
  const base = openBase(open, temporaryFolder(t));
  t.teardown(() => base.close());
  const { sumLog, change } = base.ledgers();
  const write = (ids: readonly string[]): boolean =>
    change(() => {
      const { names, values } = sumTable(
        1,
        ids.map((id) => ({ id, add: { n: 1 } })),
      );
      return appendToSumLog(sumLog, 'l', { expiresAt: 1, ids, names, values });
    });
  let entries = 1;
  while (!write(['a'])) entries++;
  t.equal(entries, 512);
  t.same(
    change(() => takeSumLog(sumLog, 'l')),
    [{ id: 'a', expiresAt: 1, add: new Map([['n', 512]]) }],
  );
  t.equal(sumLog.getKeysCount(), 0);

  const long = Array.from({ length: 20_000 }, (_, index) => `${index}`.padStart(400, '0'));
  for (entries = 1; !write(long); ) entries++;
  t.equal(entries, 5, '8 MB each');
  t.equal(change(() => takeSumLog(sumLog, 'l')).length, 20_000);
});

test('entries are added up by their ids and names, and last as long as the longest of them', async (t) => {
  const base = openBase(open, temporaryFolder(t));
  t.teardown(() => base.close());
  const { sumLog, change } = base.ledgers();
  const ids = Array.from({ length: 100 }, (_, index) => `id-${`${index}`.padStart(2, '0')}`);
  const entries = [
    { expiresAt: 3, sums: [{ id: 'id-07', add: { early: 5 } }] },
    {
      expiresAt: 2,
      sums: ids.map((id, index) => ({ id, add: { n: index, ...(index % 10 === 7 ? { m: 1 } : {}) } })),
    },
    { expiresAt: 1, sums: [{ id: 'id-99', add: { late: 8, n: Number.MAX_SAFE_INTEGER } }] },
  ];
  const changes = change(() => {
    for (const { expiresAt, sums } of entries) {
      const table = sumTable(1, sums);
      appendToSumLog(sumLog, 'l', { expiresAt, ids: table.ids, names: table.names, values: table.values });
    }
    return takeSumLog(sumLog, 'l');
  });
  const written = changes.map(({ id, expiresAt, add }) => ({ id, expiresAt, add: Object.fromEntries(add) }));
  const expected = ids.map((id, index) => ({
    id,
    expiresAt: 2,
    add: { n: index, ...(index % 10 === 7 ? { m: 1 } : {}) },
  }));
  expected.shift();
  t.same(
    written,
    expected.map((sum) => {
      if (sum.id === 'id-07') return { id: sum.id, expiresAt: 3, add: { early: 5, n: 7, m: 1 } };
      if (sum.id === 'id-99') return { ...sum, add: { n: Number.MAX_SAFE_INTEGER, late: 8 } };
      return sum;
    }),
    'id-00 has nothing but zeros',
  );
});
