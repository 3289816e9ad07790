import { open } from 'lmdb';
import { test } from 'tap';
import { createEmbeddedStore } from '../../src/store/embedded.js';
import { openBase } from '../../src/store/embedded-base.js';
import { appendToSumLog, findInSumLog, sumLogParts, takeSumLog } from '../../src/store/sum-log.js';
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

test('what the log holds of few sums is told without merging it', async (t) => {
  const path = temporaryFolder(t);
  const store = createEmbeddedStore({ path });
  const append = async (number: number, add: number): Promise<void> => {
    const ids = Array.from({ length: 20 }, (_, key) => [`d1/k${key}/m`, `d2/k${key}/m`]).flat();
    const sums = sumTable(
      minuteMs,
      ids.map((id) => ({ id, add: { n: add } })),
    );
    await store.append('l', ledgerBatch({ number, sums }));
  };
  await append(1, 1);
  t.equal((await allSums(store, 'l')).size, 40);
  await append(2, 10);
  const late = sumTable(minuteMs, [
    { id: 'd2/k7/"\u{1f600}', add: { n: 5 } },
    { id: 'd2/k70/m', add: { n: 9 } },
  ]);
  await store.append('l', ledgerBatch({ number: 3, sums: late }));
  const ofKey = (day: string) => allSums(store, 'l', { from: `${day}/k7/`, until: `${day}/k70` });
  const [first, second, third] = await Promise.all([ofKey('d1'), ofKey('d2'), ofKey('d3')]);
  t.same([...first], [['d1/k7/m', { n: 11 }]]);
  t.same(
    [...second],
    [
      ['d2/k7/"\u{1f600}', { n: 5 }],
      ['d2/k7/m', { n: 11 }],
    ],
  );
  t.equal(third.size, 0);
  await store.close();
  t.equal(held(path).entries, 2);
});

test('of an entry that does not say what its least id is, all ids are looked at', (t) => {
  const base = openBase(open, temporaryFolder(t));
  t.teardown(() => base.close());
  const { sumLog, change } = base.ledgers();
  const { names, values } = sumTable(1, [{ id: 'b', add: { n: 1 } }]);
  change(() => appendToSumLog(sumLog, 'l', { expiresAt: 1, ids: ['b'], names, values }));
  const [entry] = [...sumLog.getRange({})];
  const head = Buffer.from(JSON.stringify({ ids: ['b', 'a'], names: ['n'] }));
  const older = Buffer.alloc(12 + head.length + 16);
  older.writeDoubleLE(1, 0);
  older.writeUInt32LE(head.length, 8);
  head.copy(older, 12);
  older.set(new Uint8Array(Float64Array.of(1, 2).buffer), 12 + head.length);
  change(() => void sumLog.put(entry?.key ?? Buffer.alloc(1), older));
  const find = (from: string, until: string) => findInSumLog(sumLog, 'l', [{ from, until }], 10)[0];
  t.same(find('a', 'b'), [{ id: 'a', expiresAt: 1, add: new Map([['n', 2]]) }]);
  t.same(find('c', 'd'), []);
  t.equal(findInSumLog(sumLog, 'l', [{ from: '', until: null }], 1)[0], null, 'more than are wanted');
  t.end();
});

test('a log is merged before it is long', async (t) => {
  const base = openBase(open, temporaryFolder(t));
  t.teardown(() => base.close());
  const { sumLog, change } = base.ledgers();
  const write = (ids: readonly string[]): string | null =>
    change(() => {
      const { names, values } = sumTable(
        1,
        ids.map((id) => ({ id, add: { n: 1 } })),
      );
      return appendToSumLog(sumLog, 'l', { expiresAt: 1, ids, names, values });
    });
  let entries = 1;
  while (write(['a']) === null) entries++;
  t.equal(entries, 512);
  t.same(
    change(() => takeSumLog(sumLog, 'l')),
    [{ id: 'a', expiresAt: 1, add: new Map([['n', 512]]) }],
  );
  t.equal(sumLog.getKeysCount(), 0);

  const long = Array.from({ length: 20_000 }, (_, index) => `${index}`.padStart(400, '0'));
  let due: string | null = null;
  for (entries = 0; due === null; entries++) due = write(long);
  t.equal(entries, 5, '8 MB each');
  t.ok(change(() => takeSumLog(sumLog, due)).length < 2000, 'part by part');
  const others = sumLogParts('l').flatMap((part) => change(() => takeSumLog(sumLog, part)));
  t.ok(others.length > 18_000 && others.every(({ add }) => add.get('n') === entries));
  t.equal(sumLog.getKeysCount(), 0);
});

test('a batch changes a part of the sums of thousands at most, and all are read as they are', async (t) => {
  const path = temporaryFolder(t);
  const store = createEmbeddedStore({ path });
  const ids = Array.from({ length: 4000 }, (_, index) => `${index}`.padStart(400, '0'));
  const sums = sumTable(
    minuteMs,
    ids.map((id) => ({ id, add: { n: 1 } })),
  );
  let batches = 0;
  for (let merged = 0; merged === 0; merged = held(path).sums)
    await store.append('l', ledgerBatch({ number: ++batches, sums }));
  t.ok(held(path).sums < 400);
  t.same(await store.readSums('l', { from: ids[7] ?? '', until: ids[8] ?? '' }, 10, null), {
    sums: [{ id: ids[7], values: { n: batches } }],
    next: null,
  });
  t.ok(held(path).sums < 400, 'that merges nothing');
  const all = await allSums(store, 'l');
  t.strictSame([all.size, [...all.values()].every(({ n }) => n === batches)], [4000, true]);
  t.strictSame(held(path), { entries: 0, sums: 4000 });
  await store.close();
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

test('sums that are merged again and again stay exact, whatever their numbers are named', async (t) => {
  const store = createEmbeddedStore({ path: temporaryFolder(t) });
  t.teardown(() => store.close());
  const most = Number.MAX_SAFE_INTEGER;
  const batches: Readonly<Record<string, number>>[] = [
    { a: 1, '"': 2, ']': 3 },
    { ']': 4, '[",': 5, '': 6 },
    { a: -10, '\\': 7, '"': 8 },
    { '\\"]': 9, a: most, late: 1 },
    { a: 100, late: -1, ']': -7 },
    { '\\\\': 11 },
  ];
  for (const [index, add] of batches.entries()) {
    const sums = sumTable(minuteMs, [
      { id: 'one', add },
      { id: `of-${index}`, add },
    ]);
    await store.append('l', ledgerBatch({ number: index + 1, sums }));
    t.same((await allSums(store, 'l', { limit: 1 })).get(`of-${index}`), add);
  }
  const expected = { a: most, '"': 10, ']': 0, '[",': 5, '': 6, '\\': 7, '\\"]': 9, late: 0, '\\\\': 11 };
  t.same((await allSums(store, 'l')).get('one'), expected);
});

test('of a large batch, each part of the log has sums that are neighbours', async (t) => {
  const base = openBase(open, temporaryFolder(t));
  t.teardown(() => base.close());
  const { sumLog, change } = base.ledgers();
  const ids = Array.from({ length: 1600 }, (_, index) => `${(index * 7) % 1600}`.padStart(4, '0'));
  const { names, values } = sumTable(
    1,
    ids.map((id) => ({ id, add: { n: 1 } })),
  );
  change(() => appendToSumLog(sumLog, 'l', { expiresAt: 1, ids, names, values }));
  const taken = sumLogParts('l').map((part) => change(() => takeSumLog(sumLog, part).map(({ id }) => id)));
  t.ok(taken.every((part) => part.length === 100));
  t.strictSame(taken.flat(), [...ids].sort());
});
