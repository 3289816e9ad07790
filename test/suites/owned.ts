import { type Test, test } from 'tap';
import type { StoreSettings } from '../../src/config/types.js';
import { countedBytes, type OwnedRecords } from '../../src/store/owned.js';
import { eventually } from '../support/eventually.js';
import { startStoreProcess } from './store-processes.js';

/** Two stores on the same data, as two processes have them, and nobody else. */
interface OwnedUnderTest {
  readonly settings: StoreSettings;
  readonly owned: OwnedRecords;
  readonly other: OwnedRecords;
  sweep(): Promise<void>;
  /** Number of records and their total size, on which everything that is stored must agree. */
  agreement(): Promise<{ readonly count: number; readonly sum: number }>;
  /** Unix milliseconds at which each record expires, by its value. */
  expiries(): Promise<ReadonlyMap<string, number>>;
}

interface OwnedSuite {
  /** Why the tests cannot run, or false. */
  readonly skip: string | false;
  open(t: Test): Promise<OwnedUnderTest>;
}

const minuteMs = 60_000;
const plenty = { owner: 1_000_000, all: 1_000_000 };
const mostBytes = 1_000_000;

/** The records found by ids; null if they are larger than memory allows. */
async function valuesOf(owned: OwnedRecords, owner: string, ids: readonly string[], most: number) {
  return (await owned.find(owner, ids, most))?.values ?? null;
}

/** Registers the tests that records of owners pass in every store. */
export function testOwned(name: string, { skip, open }: OwnedSuite): void {
  const ownedTest = (title: string, body: (t: Test) => Promise<void>): void =>
    void test(`${name}: ${title}`, { skip }, body);

  ownedTest('what an owner keeps is found by every process at once, in the order asked for', async (t) => {
    const { owned, other } = await open(t);
    t.same(await valuesOf(other, 'k', ['a'], mostBytes), [null]);
    const records = [
      { id: 'a', value: 'eins' },
      { id: 'b', value: '' },
      { id: 'x'.repeat(3000), value: 'ü\u0000"' },
    ];
    t.equal(await owned.keep('k', records, minuteMs, plenty), true);
    t.same(await valuesOf(other, 'k', ['x'.repeat(3000), 'none', 'b', 'a', 'a'], mostBytes), [
      'ü\u0000"',
      null,
      '',
      'eins',
      'eins',
    ]);
    t.same(await valuesOf(other, 'k2', ['a'], mostBytes), [null], 'another owner has none of it');
    t.same(await valuesOf(other, '', ['ka', 'a'], mostBytes), [null, null]);
  });

  ownedTest('an id is known to be of another owner as long as that has it', async (t) => {
    const { owned, other, sweep } = await open(t);
    const long = 'x'.repeat(3000);
    const ask = (owner: string, ids: readonly string[], most = mostBytes) => other.find(owner, ids, most);
    t.same(await ask('k', ['a']), { values: [null], ofOthers: [] }, 'before there is anything');
    await owned.keep('k', [{ id: 'a', value: '1' }], minuteMs, plenty);
    await owned.keep('k', [{ id: long, value: '2' }], minuteMs, plenty);
    await owned.keep('k', [{ id: 'gone', value: '3' }], 1, plenty);
    await owned.keep('k2', [{ id: 'ab', value: '4' }], minuteMs, plenty);
    await owned.keep('k3', [{ id: 'ab', value: '5' }], minuteMs, plenty);
    await eventually(async () => (await valuesOf(owned, 'k', ['gone'], mostBytes))?.[0] === null);
    const ids = ['gone', 'ab', 'a', '', long, 'b', 'a'];
    t.same(await ask('k', ids), { values: [null, null, '1', null, '2', null, '1'], ofOthers: ['ab'] });
    t.same(await ask('k2', ids), {
      values: [null, '4', null, null, null, null, null],
      ofOthers: ['a', long, 'a'],
    });
    t.equal(await ask('k', ['a', long], 1), null, 'more than may be in memory');
    await sweep();
    await owned.renew('k', ['a'], 10 * minuteMs);
    t.same((await ask('k2', ids))?.ofOthers, ['a', long, 'a'], 'renewed and after a sweep');
    await owned.drop('k', 'a');
    await owned.drop('k2', 'ab');
    t.same((await ask('k2', ids))?.ofOthers, ['ab', long]);
    await owned.keep('k2', [{ id: 'b', value: '' }], minuteMs, { owner: 1e6, all: countedBytes('b', 0) });
    t.same((await ask('k', ids))?.ofOthers, ['b'], "what has given way is nobody's");
  });

  ownedTest('what is renewed lives as long as what was just kept, and the rest as it did', async (t) => {
    const { owned, other, agreement, expiries } = await open(t);
    for (const [id, ttlMs] of [
      ['old', minuteMs],
      ['left', minuteMs],
      ['young', 9 * minuteMs],
    ] as const)
      await owned.keep('k', [{ id, value: `of ${id}` }], ttlMs, plenty);
    await owned.keep('other', [{ id: 'old', value: 'of another' }], minuteMs, plenty);
    const before = await expiries();
    await other.renew('k', ['old', 'young', 'none', 'old'], 10 * minuteMs);
    const after = await expiries();
    t.ok((after.get('of old') ?? 0) >= (before.get('of old') ?? 0) + 9 * minuteMs, 'it begins anew');
    for (const same of ['of left', 'of young', 'of another'])
      t.equal(after.get(same), before.get(same), same);
    t.same(await valuesOf(owned, 'k', ['old', 'left', 'young', 'none'], mostBytes), [
      'of old',
      'of left',
      'of young',
      null,
    ]);
    const counted = (id: string, value: string) => countedBytes(id, value.length);
    const all = counted('old', 'of old') + counted('left', 'of left') + counted('young', 'of young');
    t.same(await agreement(), { count: 4, sum: all + counted('old', 'of another') });
    await owned.keep('k', [{ id: 'new', value: '' }], minuteMs, { owner: all, all: 10 * all });
    t.same(await valuesOf(owned, 'k', ['old', 'left'], mostBytes), ['of old', null], 'and gives way as late');
  });

  ownedTest('what is renewed after its end stays gone', async (t) => {
    const { owned } = await open(t);
    await owned.keep('k', [{ id: 'a', value: '1' }], 1, plenty);
    await eventually(async () => (await valuesOf(owned, 'k', ['a'], mostBytes))?.[0] === null);
    await owned.renew('k', ['a'], minuteMs);
    t.same(await valuesOf(owned, 'k', ['a'], mostBytes), [null]);
  });

  ownedTest('what is kept again under its id is written anew, and counted once', async (t) => {
    const { owned, other, agreement } = await open(t);
    await owned.keep('k', [{ id: 'a', value: 'x'.repeat(1000) }], minuteMs, plenty);
    await other.keep(
      'k',
      [
        { id: 'a', value: 'first' },
        { id: 'a', value: 'last' },
      ],
      minuteMs,
      plenty,
    );
    t.same(await valuesOf(owned, 'k', ['a'], mostBytes), ['last']);
    t.same(await agreement(), { count: 1, sum: countedBytes('a', 4) });
  });

  ownedTest('the oldest of an owner give way to its new ones, and those of others do not', async (t) => {
    const { owned, agreement } = await open(t);
    const value = 'x'.repeat(1000);
    const most = { owner: 3 * countedBytes('1', value.length), all: 1_000_000 };
    await owned.keep('other', [{ id: '0', value }], minuteMs, most);
    // Different times to live show the order, since milliseconds may be equal.
    for (const id of ['1', '2', '3', '4', '5']) {
      t.equal(await owned.keep('k', [{ id, value }], minuteMs + Number(id) * 1000, most), true);
    }
    const found = await valuesOf(owned, 'k', ['1', '2', '3', '4', '5'], mostBytes);
    t.same(found, [null, null, value, value, value]);
    t.same(await valuesOf(owned, 'other', ['0'], mostBytes), [value]);
    t.equal((await agreement()).count, 4);
  });

  ownedTest('the oldest of anybody give way when all owners together have too much', async (t) => {
    const { owned } = await open(t);
    const value = 'x'.repeat(1000);
    const most = { owner: 1_000_000, all: 3 * countedBytes('1', value.length) };
    for (const id of ['1', '2', '3', '4', '5']) {
      await owned.keep(`owner ${id}`, [{ id, value }], minuteMs + Number(id) * 1000, most);
    }
    const found = await Promise.all(
      ['1', '2', '3', '4', '5'].map(
        async (id) => (await valuesOf(owned, `owner ${id}`, [id], mostBytes))?.[0],
      ),
    );
    t.same(found, [null, null, value, value, value]);
  });

  ownedTest('what alone is more than the bounds allow is not kept and displaces nothing', async (t) => {
    const { owned } = await open(t);
    const most = { owner: 1000, all: 2000 };
    await owned.keep('k', [{ id: 'a', value: 'small' }], minuteMs, most);
    const large = 'x'.repeat(1000);
    t.equal(await owned.keep('k', [{ id: 'b', value: large }], minuteMs, most), false);
    t.equal(await owned.keep('k', [{ id: 'b', value: large }], minuteMs, { owner: 5000, all: 1000 }), false);
    t.same(await valuesOf(owned, 'k', ['a', 'b'], mostBytes), ['small', null]);
  });

  ownedTest('a bound that was lowered is reached over several keeps', async (t) => {
    const { owned, agreement } = await open(t);
    const many = Array.from({ length: 3000 }, (_, index) => ({ id: `${index}`, value: 'x' }));
    await owned.keep('k', many, minuteMs, plenty);
    const most = { owner: 10_000, all: 1_000_000 };
    const counts = [];
    for (const id of ['a', 'b', 'c', 'd']) {
      t.equal(await owned.keep('k', [{ id, value: '1' }], 2 * minuteMs, most), true);
      counts.push((await agreement()).count);
    }
    t.same(counts.slice(0, 2), [2001, 1002], 'a thousand at a time');
    t.ok((await agreement()).sum <= most.owner);
    t.same(await valuesOf(owned, 'k', ['a', 'd'], mostBytes), ['1', '1']);
  });

  ownedTest('what came makes as much room as it takes', async (t) => {
    const { owned, agreement } = await open(t);
    const many = Array.from({ length: 1500 }, (_, index) => ({ id: `${index}`, value: 'x' }));
    await owned.keep('k', many, minuteMs, plenty);
    const most = { owner: (await agreement()).sum, all: 1_000_000 };
    const large = [{ id: 'a', value: 'x'.repeat(most.owner - 1000) }];
    t.equal(await owned.keep('k', large, 2 * minuteMs, most), true);
    t.ok((await agreement()).sum <= most.owner);
  });

  ownedTest('records of one call stay together, whatever has to give way for them', async (t) => {
    const { owned } = await open(t);
    const most = { owner: 4 * countedBytes('a0', 100), all: 1_000_000 };
    const of = (number: number) =>
      ['a', 'b'].map((half) => ({ id: `${half}${number}`, value: 'x'.repeat(100) }));
    for (let number = 0; number < 5; number += 1) {
      await owned.keep('k', of(number), minuteMs - number * 1000, most);
      const found = await valuesOf(owned, 'k', [`a${number}`, `b${number}`], mostBytes);
      t.notOk(found?.includes(null), 'also when their time ends before that of all others');
    }
  });

  ownedTest('values that are too large together are not read', async (t) => {
    const { owned } = await open(t);
    const records = ['a', 'b'].map((id) => ({ id, value: 'ü'.repeat(50) }));
    await owned.keep('k', records, minuteMs, plenty);
    t.equal(await valuesOf(owned, 'k', ['a', 'b'], 199), null);
    t.same(await valuesOf(owned, 'k', ['a', 'b'], 200), ['ü'.repeat(50), 'ü'.repeat(50)]);
  });

  ownedTest('what has expired is not found, and a sweep leaves nothing of it', async (t) => {
    const { owned, sweep, agreement } = await open(t);
    const records = Array.from({ length: 700 }, (_, index) => ({ id: `${index}`, value: 'x' }));
    await owned.keep('short', records, 1, plenty);
    await owned.keep('k', [{ id: 'kept', value: '1' }], minuteMs, plenty);
    await eventually(async () => (await valuesOf(owned, 'short', ['699'], mostBytes))?.[0] === null);
    t.equal(await owned.drop('short', '699'), false);
    await sweep();
    t.same(await agreement(), { count: 1, sum: countedBytes('kept', 1) });
  });

  ownedTest('what is dropped is gone for everybody', async (t) => {
    const { owned, other, agreement } = await open(t);
    await owned.keep('k', [{ id: 'a', value: '1' }], minuteMs, plenty);
    t.equal(await other.drop('k2', 'a'), false);
    t.equal(await other.drop('k', 'a'), true);
    t.equal(await owned.drop('k', 'a'), false);
    t.same(await valuesOf(owned, 'k', ['a'], mostBytes), [null]);
    t.same(await agreement(), { count: 0, sum: 0 });
  });

  ownedTest(
    'processes that keep at once hold the bounds, and a killed one leaves whole batches',
    async (t) => {
      const { settings, owned, agreement } = await open(t);
      const bytes = 60_000;
      const processes = ['k1', 'k1', 'k2'].map((owner) =>
        startStoreProcess({ settings, does: 'keep', owner, bytes }),
      );
      t.teardown(() => processes.map((each) => each.kill()));
      await Promise.all(processes.map((each) => each.untilTold(150)));
      for (const each of processes) each.kill();
      await Promise.all(processes.map((each) => each.exited));
      const { sum } = await agreement();
      t.ok(sum > bytes / 2 && sum <= 2 * bytes, `${sum} bytes`);
      const last = processes[2]?.told.at(-1) ?? '';
      const found = await valuesOf(owned, 'k2', [`a${last}`, `b${last}`], mostBytes);
      t.notOk(found?.includes(null), 'what the process was told is kept');
      t.equal(
        await owned.keep('k2', [{ id: 'after', value: '1' }], minuteMs, { owner: bytes, all: 2 * bytes }),
        true,
      );
    },
  );
}
