import { test } from 'tap';
import { KeyBook } from '../../src/keys/key-book.js';
import { createManagedKeySet } from '../../src/keys/key-set.js';
import { KeyWatch, type KeyWatchOptions } from '../../src/keys/key-watch.js';
import { fromWire, toWire } from '../../src/keys/key-wire.js';
import type { KeyChange } from '../../src/keys/managed-key.js';
import { eventually } from '../support/eventually.js';
import { type FakeCall, type FakeData, fakeData, fakeStore, lost } from './fake-store.js';
import { plainInput } from './samples.js';

const none = { taken: () => false, ownedMs: () => 0 };
const collection = 'managed-keys';
/** Looks only when it is told to. */
const never = 2 ** 31 - 1;

/** A watch on a store of its own on the data, and what it told. */
function makeWatch(
  data: FakeData,
  options: Partial<KeyWatchOptions> & { before?: (call: FakeCall) => unknown } = {},
) {
  const told: KeyChange[] = [];
  const faults: unknown[] = [];
  const damaged: string[] = [];
  const revived: string[] = [];
  const calls: FakeCall[] = [];
  const before = async (call: FakeCall): Promise<void> => {
    calls.push(call);
    await options.before?.(call);
  };
  const watch = new KeyWatch(fakeStore({ data, before }), {
    everyMs: never,
    onKeys: (change) => told.push(change),
    onFault: (error) => faults.push(error),
    onDamaged: (ids) => damaged.push(...ids),
    onRevived: (ids) => revived.push(...ids),
    ...options,
  });
  /** What was told since the last time, as ids. */
  const news = () =>
    told
      .splice(0)
      .map(({ whole, put, removed }) => ({ whole, put: put.map(({ id }) => id).sort(), removed }));
  return { watch, told, faults, damaged, revived, calls, news };
}

function makeBook(data: FakeData, options: Parameters<typeof fakeStore>[0] = {}) {
  return new KeyBook(fakeStore({ ...options, data }), none);
}

test('of many keys that change at once some are told at a time, and others have their turn between', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  const ids = Array.from({ length: 400 }, (_, index) => `key-${index}`);
  await Promise.all(ids.map((id) => book.create({ ...plainInput, id })));
  const told: number[] = [];
  let turns = 0;
  const { watch } = makeWatch(data, {
    onKeys({ put, removed }) {
      told.push(put.length + removed.length);
      const before = told.length;
      setImmediate(() => {
        if (told.length === before) turns++;
      });
    },
  });
  await watch.refresh();
  told.length = 0;
  await Promise.all(
    ids.map((id, index) => (index < 200 ? book.revoke(id) : book.update(id, { label: 'x' }, null))),
  );
  turns = 0;
  await watch.refresh();
  t.equal(
    told.reduce((sum, keys) => sum + keys, 0),
    400,
  );
  t.ok(Math.max(...told) <= 32);
  t.ok(turns >= told.length - 1);
  t.equal(watch.count(), 200);
  await watch.stop();
});

test('what a first look finds is told some at a time, and that it is all with the last of them', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  const ids = Array.from({ length: 250 }, (_, index) => `key-${index}`);
  await Promise.all(ids.map((id) => book.create({ ...plainInput, id })));
  const set = createManagedKeySet();
  const told: KeyChange[] = [];
  const complete: boolean[] = [];
  let turns = 0;
  const { watch } = makeWatch(data, {
    onKeys(change) {
      told.push(change);
      set.apply(fromWire(toWire(change)));
      complete.push(set.isComplete && watch.isWhole);
      const before = told.length;
      setImmediate(() => {
        if (told.length === before) turns++;
      });
    },
  });
  await watch.refresh();
  t.ok(told.every(({ put }) => put.length <= 32));
  t.same(
    told.map(({ whole }) => whole),
    told.map((_, index) => index === 0),
  );
  t.ok(turns >= told.length - 1);
  t.notOk(complete.slice(0, -1).includes(true), 'a key that is not found yet is not refused for good');
  t.ok(set.isComplete && watch.isWhole);
  t.equal(set.size, 250);
  await watch.stop();
});

test('all is told at the end of a first look whose last keys are revoked', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  const ids = Array.from({ length: 100 }, (_, index) => `key-${100 + index}`);
  for (const id of ids) await book.create({ ...plainInput, id });
  for (const id of ids) await book.revoke(id);
  const set = createManagedKeySet();
  const { watch } = makeWatch(data, { onKeys: (change) => set.apply(change) });
  await watch.refresh();
  t.ok(set.isComplete && watch.isWhole);
  await watch.stop();
});

test('when a listener throws within a first look, everything is told again at once', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  const ids = Array.from({ length: 100 }, (_, index) => `key-${index}`);
  for (const id of ids) await book.create({ ...plainInput, id });
  const set = createManagedKeySet();
  let changes = 0;
  const { watch } = makeWatch(data, {
    onKeys(change) {
      if (++changes === 2) throw new Error('not now');
      set.apply(change);
    },
  });
  await watch.refresh().catch(() => undefined);
  await watch.refresh();
  t.equal(changes, 3);
  t.ok(set.isComplete && watch.isWhole);
  t.equal(set.size, 100);
  await watch.stop();
});

test('the first look tells everything, and later ones only what changed', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  for (const id of ['a', 'b', 'c']) await book.create({ ...plainInput, id });
  await book.revoke('c');
  const { watch, news, calls } = makeWatch(data);
  await watch.refresh();
  t.same(news(), [{ whole: true, put: ['a', 'b'], removed: [] }]);
  await watch.refresh();
  t.same(news(), []);
  await book.create({ ...plainInput, id: 'd' });
  await book.update('a', { label: 'x' }, null);
  await book.revoke('b');
  calls.length = 0;
  await watch.refresh();
  t.same(news(), [{ whole: false, put: ['a', 'd'], removed: ['b'] }]);
  t.same(
    calls.filter(({ name }) => name === 'list'),
    [],
    'only what was announced is read',
  );
  t.equal(calls.length, 4);
  t.same(
    watch
      .active()
      .map(({ id }) => id)
      .sort(),
    ['a', 'd'],
  );
  calls.length = 0;
  await watch.refresh();
  t.equal(calls.length, 1, 'nothing but the announcements');
  await watch.stop();
});

test('an empty store is told once, as nothing', async (t) => {
  const { watch, news } = makeWatch(fakeData());
  await watch.refresh();
  await watch.refresh();
  t.same(news(), [{ whole: true, put: [], removed: [] }]);
  await watch.stop();
});

test('who is too far behind reads everything, and tells only what is different', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  await book.create({ ...plainInput, id: 'a' });
  await book.create({ ...plainInput, id: 'b' });
  const { watch, news, calls } = makeWatch(data);
  await watch.refresh();
  news();
  for (let index = 0; index < 300; index++) await book.update('a', { label: `${index}` }, null);
  await book.revoke('b');
  calls.length = 0;
  await watch.refresh();
  t.same(news(), [{ whole: false, put: ['a'], removed: ['b'] }]);
  t.ok(calls.some(({ name }) => name === 'list'));
  await watch.stop();
});

test('a lost store is told once and takes nothing away, and what happened meanwhile is caught up with', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  await book.create({ ...plainInput, id: 'a' });
  await book.create({ ...plainInput, id: 'b' });
  let lostAt: FakeCall['name'] | 'all' | null = null;
  const before = ({ name }: FakeCall) => {
    if (lostAt === 'all' || lostAt === name) throw lost();
  };
  const { watch, news, faults } = makeWatch(data, { before });
  await watch.refresh();
  news();
  lostAt = 'all';
  await book.revoke('a');
  for (let round = 0; round < 3; round++) await t.rejects(watch.refresh());
  t.match(faults, [{ kind: 'store_unavailable' }]);
  t.equal(watch.active().length, 2);
  t.same(news(), []);
  lostAt = null;
  await watch.refresh();
  t.same(news(), [{ whole: false, put: [], removed: ['a'] }]);
  t.equal(faults.length, 2);
  t.equal(faults[1], null);
  await watch.stop();
});

test('a look that fails half way changes nothing, and its changes are not lost', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  for (const id of ['a', 'b']) await book.create({ ...plainInput, id });
  let failing: string | null = 'list';
  const before = ({ name, id }: FakeCall) => {
    if (failing === name || (failing !== null && failing === id)) throw lost();
  };
  const { watch, news } = makeWatch(data, { before });
  await t.rejects(watch.refresh());
  t.same(news(), []);
  failing = null;
  await watch.refresh();
  t.same(news(), [{ whole: true, put: ['a', 'b'], removed: [] }]);
  await book.revoke('a');
  await book.revoke('b');
  failing = 'b';
  await t.rejects(watch.refresh());
  t.same(news(), []);
  failing = null;
  await watch.refresh();
  t.same(news(), [{ whole: false, put: [], removed: ['a', 'b'] }]);
  await watch.stop();
});

test('a revocation while everything is read is seen by the next look, and never taken back', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  const ids = Array.from({ length: 1200 }, (_, index) => `k${index}`);
  await Promise.all(ids.map((id) => book.create({ ...plainInput, id })));
  for (const at of [0, 1, 2]) {
    let pages = 0;
    const before = async ({ name }: FakeCall) => {
      // Between two pages: what the first one said of it is old then.
      if (name === 'list' && pages++ === at) await book.revoke(`k${at}`);
    };
    const { watch, told } = makeWatch(data, { before });
    await watch.refresh();
    await watch.refresh();
    const live = new Set<string>();
    for (const { whole, put, removed } of told) {
      if (whole) live.clear();
      for (const { id } of put) live.add(id);
      for (const id of removed) live.delete(id);
    }
    t.notOk(live.has(`k${at}`));
    t.equal(live.size, 1200 - at - 1);
    const later = watch.active().length;
    await watch.refresh();
    t.equal(watch.active().length, later);
    await watch.stop();
  }
});

test('a key whose record moves while everything is read does not vanish', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  const ids = Array.from({ length: 1200 }, (_, index) => `k${index}`);
  await Promise.all(ids.map((id) => book.create({ ...plainInput, id })));
  let pages = Number.NEGATIVE_INFINITY;
  const before = async ({ name }: FakeCall) => {
    // An end moves a record to the front of the list, behind the reader's back. This one is far from there before, even
    // if all were made within the same millisecond and stand in the order of their ids.
    if (name === 'list' && ++pages === 2) await book.update('k999', { expiresAt: Date.now() + 1e6 }, null);
  };
  const { watch, news } = makeWatch(data, { before, wholeEveryMs: 0, secondLookMs: 0 });
  await watch.refresh();
  news();
  pages = 0;
  await watch.refresh();
  t.ok(pages > 2);
  t.same(news(), [{ whole: false, put: ['k999'], removed: [] }]);
  await watch.stop();
});

test('looks never overlap, and a refresh is answered by a look that began after it', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  let under = 0;
  let most = 0;
  const before = async ({ id }: FakeCall) => {
    if (id !== 'latest') return;
    most = Math.max(most, ++under);
    await new Promise((resolve) => setImmediate(resolve));
    under--;
  };
  const { watch } = makeWatch(data, { before });
  for (let round = 0; round < 10; round++) {
    const looking = watch.refresh();
    await new Promise((resolve) => setImmediate(resolve));
    await book.create({ ...plainInput, id: `k${round}` });
    await Promise.all([looking, watch.refresh(), watch.refresh()]);
    t.equal(watch.active().length, round + 1);
  }
  t.equal(most, 1);
  await watch.stop();
});

test('the change of a process that ended before it could announce it is found by a second look', async (t) => {
  const data = fakeData();
  await makeBook(data).create({ ...plainInput, id: 'a' });
  let isDead = false;
  let release: (() => void) | null = null;
  const before = async ({ name, collection: where }: FakeCall) => {
    if (isDead) throw lost();
    if (name !== 'replace' || where !== collection) return;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
  };
  const after = ({ name, collection: where }: FakeCall) => {
    if (name === 'replace' && where === collection) isDead = true;
  };
  const dying = makeBook(data, { before, after });
  const { watch, news } = makeWatch(data, { secondLookMs: 0 });
  await watch.refresh();
  // The whole reading that follows the first one.
  await watch.refresh();
  news();
  const revoking = dying.revoke('a').catch(() => undefined);
  const go = await eventually<(() => void) | null>(() => release);
  await watch.refresh();
  t.same(news(), [], 'it is announced, and not done');
  go();
  await revoking;
  await watch.refresh();
  t.same(news(), [{ whole: false, put: [], removed: ['a'] }]);
  await watch.stop();
});

test('a key that was seen as revoked stays so, even if its store goes back in time', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  const { record } = await book.create({ ...plainInput, id: 'a' });
  const { watch, news, revived } = makeWatch(data, { wholeEveryMs: 0, secondLookMs: 0 });
  const stored = data.collections.get(collection)?.get('a');
  if (stored === undefined) throw new Error('the key was made');
  const earlier = { ...stored };
  await watch.refresh();
  await book.revoke('a');
  await watch.refresh();
  news();
  t.same(revived, []);
  data.collections.get(collection)?.set('a', { ...earlier });
  await watch.refresh();
  t.same(revived, ['a'], 'it is said that the store does not know of it');
  data.collections.get(collection)?.delete('a');
  await watch.refresh();
  data.collections.get(collection)?.set('a', { ...earlier });
  await watch.refresh();
  t.same(revived, ['a', 'a'], 'also when there was no record for a moment');
  t.same(news(), []);
  t.same(watch.active(), []);
  data.collections.get(collection)?.delete('a');
  await watch.refresh();
  const later = new KeyBook(fakeStore({ data }), { ...none, now: () => record.createdAt + 1 });
  await later.create({ ...plainInput, id: 'a' });
  await watch.refresh();
  t.same(news(), [{ whole: false, put: ['a'], removed: [] }], 'a key that was made later is another key');
  t.not(watch.active()[0]?.hash, record.hash);
  await watch.stop();
});

test('a damaged record is no key, and is told once', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  for (const id of ['a', 'b']) await book.create({ ...plainInput, id });
  const { watch, news, damaged } = makeWatch(data, { wholeEveryMs: 0, secondLookMs: 0 });
  await watch.refresh();
  news();
  const record = data.collections.get(collection)?.get('a');
  if (record === undefined) throw new Error('the key was made');
  record.value = record.value.slice(0, 40);
  record.revision++;
  for (let round = 0; round < 3; round++) await watch.refresh();
  t.same(news(), [{ whole: false, put: [], removed: ['a'] }]);
  t.same(damaged, ['a']);
  await watch.stop();
});

test('an emptied store has no keys', async (t) => {
  const data = fakeData();
  await makeBook(data).create({ ...plainInput, id: 'a' });
  const { watch, news } = makeWatch(data);
  await watch.refresh();
  news();
  data.collections.clear();
  await watch.refresh();
  t.same(news(), [{ whole: false, put: [], removed: ['a'] }]);
  await watch.stop();
});

test('when a listener throws, everything is told again', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  for (const id of ['a', 'b']) await book.create({ ...plainInput, id });
  let isFailing = false;
  const told: KeyChange[] = [];
  const onKeys = (change: KeyChange): void => {
    if (isFailing) throw new Error('no');
    told.push(change);
  };
  const { watch, faults } = makeWatch(data, { onKeys });
  await watch.refresh();
  await book.revoke('a');
  isFailing = true;
  await t.rejects(watch.refresh());
  isFailing = false;
  await watch.refresh();
  t.match(told.at(-1), { whole: true, put: [{ id: 'b' }], removed: [] });
  t.match(faults, [{ message: 'no' }, null]);
  await watch.stop();
});

test('it looks by itself, goes on after a fault, and is silent once stopped', async (t) => {
  const data = fakeData();
  const book = makeBook(data);
  let isLost = false;
  const before = () => {
    if (isLost) throw lost();
  };
  const { watch, told, faults, calls } = makeWatch(data, { before, everyMs: 1 });
  const keepAlive = setInterval(() => {}, 1000);
  await eventually(() => told.length === 1);
  isLost = true;
  await eventually(() => faults.length === 1);
  isLost = false;
  await eventually(() => faults.length === 2);
  await book.create({ ...plainInput, id: 'a' });
  await eventually(() => watch.active().length === 1);
  clearInterval(keepAlive);
  const looking = watch.refresh();
  await watch.stop();
  await looking;
  const { length } = calls;
  await book.revoke('a');
  await watch.refresh();
  await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(calls.length, length);
  t.equal(told.filter(({ removed }) => removed.length > 0).length, 0);
});
