import { test } from 'tap';
import { KeyBook } from '../../src/keys/key-book.js';
import { hashKey } from '../../src/keys/secret.js';
import { type FakeCall, fakeData, fakeStore, lost, refused } from './fake-store.js';
import { plainInput } from './samples.js';

const none = { taken: () => false, ownedMs: () => 0 };
const collection = 'managed-keys';

function hashOf(key: string): string {
  return hashKey(key).slice('sha256:'.length);
}

test('a key is made, shown once, and its record holds only a hash', async (t) => {
  const data = fakeData();
  const book = new KeyBook(fakeStore({ data }), { ...none, now: () => 77 });
  const input = { ...plainInput, id: 'team-a', label: 'Team A', mayRoute: true };
  const { key, record } = await book.create(input);
  t.match(key, /^sk-[\w-]{43}$/);
  t.strictSame(record, { ...input, hash: hashOf(key), former: [], createdAt: 77, revokedAt: null });
  t.strictSame((await book.get('team-a')).record, record);
  const stored = JSON.stringify([...data.collections].map(([name, records]) => [name, ...records]));
  t.notMatch(stored, key);
  const other = await book.create(plainInput);
  t.match(other.record.id, /^key-[0-9a-f]{18}$/);
  t.not(other.key, key);
});

test('an id is given once, and never when the config has it', async (t) => {
  const book = new KeyBook(fakeStore(), { ...none, taken: (id) => id === 'from-file' });
  await book.create({ ...plainInput, id: 'a' });
  await refused(t, book.create({ ...plainInput, id: 'a' }), { kind: 'conflict', param: 'id' });
  await refused(t, book.create({ ...plainInput, id: 'from-file' }), { kind: 'conflict', param: 'id' });
  await book.revoke('a');
  await refused(t, book.create({ ...plainInput, id: 'a' }), { kind: 'conflict' }, 'not while it is shown');
});

test('the id of an ended key is free when nothing can be left of what it owned', async (t) => {
  const dayMs = 24 * 60 * 60 * 1000;
  for (const [ownedDays, freeAfter] of [
    [7, 30],
    [365, 365],
  ] as const) {
    let now = 0;
    const clock = () => now;
    const book = new KeyBook(fakeStore({ now: clock }), {
      ...none,
      now: clock,
      ownedMs: () => ownedDays * dayMs,
    });
    await book.create({ ...plainInput, id: 'revoked' });
    await book.create({ ...plainInput, id: 'expires', expiresAt: dayMs });
    now = dayMs;
    await book.revoke('revoked');
    now += freeAfter * dayMs - 1;
    for (const id of ['revoked', 'expires'])
      await refused(t, book.create({ ...plainInput, id }), { kind: 'conflict', param: 'id' });
    now += 1;
    for (const id of ['revoked', 'expires']) await t.resolves(book.create({ ...plainInput, id }));
  }
});

test('what is not there is not found', async (t) => {
  const book = new KeyBook(fakeStore(), none);
  for (const id of ['none', '', '__proto__', 'x'.repeat(5000)]) {
    const calls = [
      book.get(id),
      book.revoke(id),
      book.rotate(id, 0, null),
      book.update(id, { label: 'x' }, null),
    ];
    for (const call of calls) await refused(t, call, { kind: 'not_found' });
  }
});

test('a revoked key stays so and cannot be changed', async (t) => {
  let now = 10;
  const book = new KeyBook(fakeStore(), { ...none, now: () => now });
  await book.create({ ...plainInput, id: 'a' });
  await book.rotate('a', 5000, null);
  t.match(await book.revoke('a'), { record: { revokedAt: 10, former: [] } });
  now = 20;
  t.match(await book.revoke('a'), { record: { revokedAt: 10 } }, 'again is nothing');
  await refused(t, book.rotate('a', 0, null), { kind: 'conflict' });
  await refused(t, book.update('a', { label: 'x' }, null), { kind: 'conflict' });
  t.equal((await book.get('a')).record.revokedAt, 10);
});

test('a rotation gives a new key and lets former ones work on for their grace', async (t) => {
  let now = 0;
  const book = new KeyBook(fakeStore(), { ...none, now: () => now });
  const hashes = [(await book.create({ ...plainInput, id: 'a' })).key].map(hashOf);
  const rotate = async (graceMs: number) => {
    const { key, record } = await book.rotate('a', graceMs, null);
    hashes.push(hashOf(key));
    t.equal(record.hash, hashOf(key));
    t.strictSame((await book.get('a')).record, record);
    return record.former;
  };
  t.strictSame(await rotate(100), [{ hash: hashes[0], until: 100 }]);
  now = 50;
  t.strictSame(await rotate(100), [
    { hash: hashes[1], until: 150 },
    { hash: hashes[0], until: 100 },
  ]);
  now = 100;
  t.strictSame(
    (await rotate(100)).map(({ hash }) => hash),
    [hashes[2], hashes[1]],
    'what is over is forgotten',
  );
  for (let round = 0; round < 10; round++) t.ok((await rotate(100)).length <= 4);
  t.strictSame(await rotate(0), [], 'without grace all of them end');
});

test('an expired key is not rotated, but may be given more time', async (t) => {
  let now = 0;
  const book = new KeyBook(fakeStore(), { ...none, now: () => now });
  await book.create({ ...plainInput, id: 'a', expiresAt: 10 });
  now = 10;
  await refused(t, book.rotate('a', 0, null), { kind: 'conflict' });
  await book.update('a', { expiresAt: 20 }, null);
  t.equal((await book.rotate('a', 0, null)).record.expiresAt, 20);
});

test('an update changes what it names, null included, and nothing else', async (t) => {
  const book = new KeyBook(fakeStore(), none);
  const limits = { requestsPerMinute: 5, tokensPerMinute: null, concurrent: null };
  const { record } = await book.create({ ...plainInput, id: 'a', label: 'x', limits, expiresAt: 9e15 });
  const { record: changed } = await book.update(
    'a',
    { limits: null, groups: ['one'], label: undefined },
    null,
  );
  t.strictSame(changed, { ...record, limits: null, groups: ['one'] });
  t.strictSame((await book.get('a')).record, changed);
});

test('a change on an old revision is a conflict', async (t) => {
  const book = new KeyBook(fakeStore(), none);
  await book.create({ ...plainInput, id: 'a' });
  const { revision } = await book.get('a');
  const { revision: later } = await book.update('a', { label: 'mine' }, revision);
  t.equal((await book.get('a')).revision, later);
  await refused(t, book.update('a', { label: 'theirs' }, revision), { kind: 'conflict' });
  await refused(t, book.rotate('a', 0, revision), { kind: 'conflict' });
  t.equal((await book.get('a')).record.label, 'mine');
});

test('a list has every key, page by page, and names what cannot be read', async (t) => {
  const store = fakeStore();
  const book = new KeyBook(store, none);
  const ids = Array.from({ length: 30 }, (_, index) => `k${index}`);
  for (const id of ids) await book.create({ ...plainInput, id });
  await book.revoke('k3');
  await store.create(collection, 'broken', '{"version":1', 60_000);
  const { value = '' } = (await store.get(collection, 'k4')) ?? {};
  await store.create(collection, 'stranger', value, 60_000);
  const seen: string[] = [];
  const damaged: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await book.list(cursor, 7);
    t.ok(page.keys.length <= 7);
    seen.push(...page.keys.map(({ record }) => record.id));
    damaged.push(...page.damaged);
    cursor = page.next;
  } while (cursor !== null);
  t.same(seen.sort(), [...ids].sort());
  t.same(damaged.sort(), ['broken', 'stranger']);
  t.equal((await book.list(null, 100)).keys.length, 30);
});

test('a record that cannot be read is no key, and revoking it removes it', async (t) => {
  const store = fakeStore();
  const book = new KeyBook(store, none);
  await store.create(collection, 'a', 'nonsense', 60_000);
  for (const call of [book.get('a'), book.rotate('a', 0, null), book.update('a', {}, null)]) {
    await refused(t, call, { kind: 'not_found', message: /cannot be read/ });
  }
  await refused(t, book.create({ ...plainInput, id: 'a' }), { kind: 'conflict' });
  t.equal(await book.revoke('a'), null);
  await t.resolves(book.create({ ...plainInput, id: 'a' }));
});

test('there are no more keys than there may be, even when they are made at once', async (t) => {
  const data = fakeData();
  const made = new KeyBook(fakeStore({ data }), { ...none, mostKeys: 10 });
  await made.create({ ...plainInput, id: 'first' });
  const book = new KeyBook(fakeStore({ data }), { ...none, mostKeys: 10 });
  const ids = ['first', ...Array.from({ length: 20 }, (_, index) => `k${index}`)];
  const outcomes = await Promise.allSettled(ids.map((id) => book.create({ ...plainInput, id })));
  t.ok(outcomes.filter(({ status }) => status === 'fulfilled').length <= 9);
  for (let index = 0; index < 10; index++) {
    await book.create({ ...plainInput, id: `more-${index}` }).catch(() => undefined);
  }
  t.equal(data.collections.get(collection)?.size, 10, 'and one that was refused takes no room');
  await refused(t, book.create(plainInput), { kind: 'conflict', message: /10 keys/ });
});

test('while the store is lost every call says so, and nothing was made', async (t) => {
  let isLost = true;
  const data = fakeData();
  const before = () => {
    if (isLost) throw lost();
  };
  const book = new KeyBook(fakeStore({ data, before }), none);
  const input = { ...plainInput, id: 'a' };
  const calls = [
    book.create(input),
    book.get('a'),
    book.list(null, 100),
    book.revoke('a'),
    book.rotate('a', 0, null),
  ];
  for (const call of calls) await refused(t, call, { kind: 'store_unavailable' });
  isLost = false;
  await t.resolves(book.create(input));
});

test('a key that was made is shown even if the store is lost just then', async (t) => {
  let isLost = false;
  const cut = (name: FakeCall['name']) => (call: FakeCall) => {
    if (call.name === name && call.collection === collection) isLost = true;
  };
  const before = () => {
    if (isLost) throw lost();
  };
  const data = fakeData();
  const creating = new KeyBook(fakeStore({ data, before, after: cut('create') }), none);
  const { key } = await creating.create({ ...plainInput, id: 'a' });
  isLost = false;
  const rotating = new KeyBook(fakeStore({ data, before, after: cut('replace') }), none);
  t.equal((await rotating.get('a')).record.hash, hashOf(key));
  const { key: next } = await rotating.rotate('a', 0, null);
  isLost = false;
  t.equal((await rotating.get('a')).record.hash, hashOf(next));
  await refused(t, rotating.revoke('a'), { kind: 'store_unavailable' }, 'nobody heard of it yet');
  isLost = false;
  t.match(await rotating.revoke('a'), { record: { id: 'a' } });
});
