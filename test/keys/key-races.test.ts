import { test } from 'tap';
import { announcedSince, createAnnouncer, readAnnouncements } from '../../src/keys/key-announcements.js';
import { KeyBook } from '../../src/keys/key-book.js';
import { random } from '../support/seed.js';
import { type FakeCall, fakeData, fakeStore, refused } from './fake-store.js';
import { plainInput } from './samples.js';

const none = { taken: () => false, ownedMs: () => 0 };

/** Waits a random number of turns of the loop before each call and after it. */
async function hesitate(): Promise<void> {
  for (let turns = Math.floor(random() * 4); turns > 0; turns--) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Books of two processes on one store. */
function twoBooks() {
  const data = fakeData();
  const make = () => new KeyBook(fakeStore({ data, before: hesitate, after: hesitate }), none);
  return [make(), make()] as const;
}

function kindsOf(outcomes: readonly PromiseSettledResult<unknown>[]): string[] {
  return outcomes.map((outcome) =>
    outcome.status === 'fulfilled' ? 'done' : (outcome.reason as { kind: string }).kind,
  );
}

test('of two that make a key of the same id one wins', async (t) => {
  const [a, b] = twoBooks();
  for (let round = 0; round < 20; round++) {
    const input = { ...plainInput, id: `k${round}` };
    const outcomes = await Promise.allSettled([a.create(input), b.create(input)]);
    t.same(kindsOf(outcomes).sort(), ['conflict', 'done']);
    const won = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.record] : []));
    t.strictSame((await a.get(input.id)).record, won[0]);
  }
});

test('of two that rotate a key at once, at most one key counts, and it is the one that was shown', async (t) => {
  const [a, b] = twoBooks();
  for (let round = 0; round < 20; round++) {
    const id = `k${round}`;
    await a.create({ ...plainInput, id });
    const { revision } = await a.get(id);
    const outcomes = await Promise.allSettled([a.rotate(id, 0, revision), b.rotate(id, 0, revision)]);
    t.same(kindsOf(outcomes).sort(), ['conflict', 'done']);
    const won = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.record] : []));
    t.strictSame((await b.get(id)).record, won[0]);
  }
});

test('a revocation wins over every change that meets it', async (t) => {
  const [a, b] = twoBooks();
  for (let round = 0; round < 20; round++) {
    const id = `k${round}`;
    await a.create({ ...plainInput, id });
    const outcomes = await Promise.allSettled([
      a.revoke(id),
      b.revoke(id),
      b.update(id, { label: 'x' }, null),
      a.rotate(id, 1000, null),
      b.update(id, { mayRoute: true }, null),
    ]);
    const kinds = kindsOf(outcomes);
    t.same(kinds.slice(0, 2), ['done', 'done']);
    t.ok(kinds.slice(2).every((kind) => kind === 'done' || kind === 'conflict'));
    t.not((await b.get(id)).record.revokedAt, null);
  }
});

test('no announcement of several processes is lost', async (t) => {
  const data = fakeData();
  const store = fakeStore({ data, before: hesitate, after: hesitate });
  const announcers = [1, 2, 3].map(() => createAnnouncer(store));
  await announcers[0]?.('start');
  const { position } = await readAnnouncements(store);
  const ids = Array.from({ length: 40 }, (_, index) => `k${index}`);
  await Promise.all(ids.map((id, index) => announcers[index % 3]?.(id)));
  t.same([...(announcedSince(await readAnnouncements(store), position) ?? [])].sort(), [...ids].sort());
});

test('what one process announces at once goes out together', async (t) => {
  let written = 0;
  const after = ({ name }: FakeCall) => {
    if (name === 'create' || name === 'replace') written++;
  };
  const store = fakeStore({ after });
  const announce = createAnnouncer(store);
  await Promise.all(Array.from({ length: 100 }, (_, index) => announce(`k${index}`)));
  t.equal(written, 1);
  await Promise.all([announce('a'), announce('b')]);
  t.equal(written, 2);
});

test('an announcement that fails leaves the next one its turn', async (t) => {
  let isLost = true;
  const before = () => {
    if (isLost) throw new Error('lost');
  };
  const store = fakeStore({ before });
  const announce = createAnnouncer(store);
  const failing = [announce('a'), announce('b')];
  for (const one of failing) await t.rejects(one, { message: 'lost' });
  isLost = false;
  await announce('c');
  t.match((await readAnnouncements(store)).changes, [[String, ['c']]]);
});

test('the record of announcements stays small, and who is too far behind is told so', async (t) => {
  const data = fakeData();
  const store = fakeStore({ data });
  const announce = createAnnouncer(store);
  t.same(await readAnnouncements(store), { position: null, changes: [] });
  await announce('first');
  const early = (await readAnnouncements(store)).position;
  for (let index = 0; index < 600; index++) await announce(`${'x'.repeat(60)}${index}`);
  const late = await readAnnouncements(store);
  t.equal(announcedSince(late, early), null);
  t.equal(announcedSince(late, null), null);
  t.equal(announcedSince(late, 'forged'), null);
  t.equal(announcedSince(late, late.position)?.size, 0);
  const text = data.collections.get('key-changes')?.get('latest')?.value ?? '';
  t.ok(text.length < 32_768, `${text.length} characters`);
  await Promise.all(Array.from({ length: 1000 }, (_, index) => announce(`many${index}`)));
  t.equal(announcedSince(await readAnnouncements(store), late.position), null, 'too many to be told');
  await announce('one');
  const after = await readAnnouncements(store);
  t.equal(announcedSince(after, late.position), null);
  await announce('two');
  t.same([...(announcedSince(await readAnnouncements(store), after.position) ?? [])], ['two']);
});

test('a damaged record of announcements is as good as none, and the next one mends it', async (t) => {
  for (const value of ['', '{', '[]', '{"version":2,"changes":[]}', '{"version":1,"changes":[["a",5]]}']) {
    const store = fakeStore();
    await store.create('key-changes', 'latest', value, 60_000);
    t.same(await readAnnouncements(store), { position: null, changes: [] }, value);
    await createAnnouncer(store)('a');
    t.match((await readAnnouncements(store)).changes, [[String, ['a']]]);
  }
});

test('an announcer that never gets its turn gives up', async (t) => {
  const data = fakeData();
  const other = createAnnouncer(fakeStore({ data }));
  const before = ({ name }: FakeCall) =>
    name === 'replace' || name === 'create' ? other('other') : undefined;
  const announce = createAnnouncer(fakeStore({ data, before }));
  await refused(t, announce('mine'), { kind: 'overloaded' });
});
