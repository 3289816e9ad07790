import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import { createKeyShares } from '../../src/config/snapshot.js';
import type { GatewayError } from '../../src/errors.js';
import { KeyBook } from '../../src/keys/key-book.js';
import { createKeyResolver, createManagedKeySet } from '../../src/keys/key-set.js';
import { KeyWatch } from '../../src/keys/key-watch.js';
import { fromWire, toWire, type WireKeys } from '../../src/keys/key-wire.js';
import { createKeyTable } from '../../src/keys/table.js';
import { createStore } from '../../src/store/create.js';
import type { Store } from '../../src/store/store.js';
import { fc } from '../support/seed.js';
import { fakeData, fakeStore } from './fake-store.js';
import { groups, models, plainInput } from './samples.js';

/** Looks only when it is told to. */
const never = 2 ** 31 - 1;

/** A key as anybody would keep it who has no store, no other processes and nothing to hide. */
interface NaiveKey {
  label: string;
  expiresAt: number | null;
  isRevoked: boolean;
  /** Every key that was ever shown, and until when it works. */
  readonly shown: Map<string, number>;
}

type Outcome = 'done' | 'not_found' | 'conflict';

interface World {
  readonly keys: Map<string, NaiveKey>;
  now: number;
}

/** Something that an operator does at one of two processes: to a book, and to the model of it. */
interface Step {
  readonly process: 0 | 1;
  /** Milliseconds that pass before. */
  readonly waits: number;
  readonly does: 'create' | 'revoke' | 'rotate' | 'update' | 'look';
  readonly id: string;
  readonly number: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  process: fc.constantFrom(0, 1),
  waits: fc.constantFrom(0, 0, 1, 5, 20),
  does: fc.constantFrom('create', 'create', 'revoke', 'rotate', 'rotate', 'update', 'look'),
  id: fc.constantFrom('a', 'b', 'c', 'from-file'),
  number: fc.integer({ min: 0, max: 30 }),
});

function end(number: number, now: number): number | null {
  return number % 3 === 0 ? null : now + 1 + number;
}

async function act(book: KeyBook, { does, id, number }: Step, { now }: World): Promise<string | null> {
  if (does === 'create') {
    return (await book.create({ ...plainInput, id, label: `${number}`, expiresAt: end(number, now) })).key;
  }
  if (does === 'revoke') await book.revoke(id);
  if (does === 'rotate') return (await book.rotate(id, number, null)).key;
  if (does === 'update') await book.update(id, { label: `${number}`, expiresAt: end(number, now) }, null);
  return null;
}

function expected({ does, id, number }: Step, { keys, now }: World): Outcome {
  const key = keys.get(id);
  if (does === 'look') return 'done';
  if (does === 'create') {
    if (id === 'from-file' || key !== undefined) return 'conflict';
    const shown = new Map();
    keys.set(id, { label: `${number}`, expiresAt: end(number, now), isRevoked: false, shown });
    return 'done';
  }
  if (key === undefined) return 'not_found';
  if (does === 'revoke') {
    key.isRevoked = true;
    return 'done';
  }
  if (key.isRevoked) return 'conflict';
  if (does === 'update') {
    key.label = `${number}`;
    key.expiresAt = end(number, now);
    return 'done';
  }
  if (key.expiresAt !== null && key.expiresAt <= now) return 'conflict';
  const working = [...key.shown].filter(([, until]) => until > now).reverse();
  working.forEach(([text, until], index) => {
    const isKept = number > 0 && index < 4;
    key.shown.set(
      text,
      isKept ? Math.min(until, until === Number.POSITIVE_INFINITY ? now + number : until) : 0,
    );
  });
  return 'done';
}

/** Plays the steps, and after each holds books, watch and table of a worker against the model. */
async function play(stores: readonly [Store, Store], steps: readonly Step[]): Promise<void> {
  const world: World = { keys: new Map(), now: 1000 };
  const now = () => world.now;
  const taken = (id: string) => id === 'from-file';
  const books = stores.map((store) => new KeyBook(store, { taken, now, ownedMs: () => 0 }));
  const [first, second] = books as [KeyBook, KeyBook];
  const set = createManagedKeySet(now);
  const table = createKeyTable(new Map(), {
    set,
    resolve: createKeyResolver(createKeyShares(groups, models)),
    configIds: new Set(),
  });
  const watch = new KeyWatch(stores[1], {
    everyMs: never,
    onFault: () => {},
    onDamaged: () => {},
    onRevived: () => {},
    onKeys: (change) => set.apply(fromWire(JSON.parse(JSON.stringify(toWire(change))) as WireKeys)),
  });
  for (const one of steps) {
    world.now += one.waits;
    const book = one.process === 0 ? first : second;
    let shown: string | null = null;
    let outcome: string = 'done';
    try {
      shown = await act(book, one, world);
    } catch (error) {
      outcome = (error as GatewayError).kind;
    }
    assert.equal(outcome, expected(one, world), JSON.stringify(one));
    if (shown !== null) world.keys.get(one.id)?.shown.set(shown, Number.POSITIVE_INFINITY);
    if (one.does === 'look' || one === steps.at(-1)) {
      await watch.refresh();
      checkTable(world, (text) => table.find(text));
    }
  }
  await checkList(world, first);
  await watch.stop();
}

function checkTable(
  { keys, now }: World,
  find: (text: string) => { readonly id: string; readonly expiresAt: number | null } | null,
): void {
  const works = (end: number | null) => end === null || end > now;
  for (const [id, { shown, expiresAt, isRevoked }] of keys) {
    for (const [text, until] of shown) {
      const found = find(text);
      const isLetIn = found !== null && works(found.expiresAt);
      assert.equal(isLetIn, !isRevoked && works(expiresAt) && until > now);
      if (found !== null) assert.equal(found.id, id);
    }
  }
}

async function checkList({ keys }: World, book: KeyBook): Promise<void> {
  const listed = new Map<string, unknown>();
  let cursor: string | null = null;
  do {
    const page = await book.list(cursor, 2);
    for (const { record } of page.keys) {
      const { id, label, expiresAt, revokedAt } = record;
      listed.set(id, { label, expiresAt, isRevoked: revokedAt !== null });
    }
    cursor = page.next;
  } while (cursor !== null);
  const known = [...keys].map(([id, { label, expiresAt, isRevoked }]) => [
    id,
    { label, expiresAt, isRevoked },
  ]);
  assert.deepEqual(listed, new Map(known as [string, unknown][]));
}

test('two books on one store behave as one list of keys, and a table follows them', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const data = fakeData();
      await play([fakeStore({ data }), fakeStore({ data })], steps);
    }),
    { numRuns: 100 },
  );
  t.pass();
});

test('the same on the embedded store', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'));
  const settings = { kind: 'embedded', path: join(folder, 'data'), taskDays: 7 } as const;
  const stores = [createStore(settings), createStore(settings)] as const;
  t.teardown(async () => {
    await Promise.all(stores.map((store) => store.close()));
    rmSync(folder, { recursive: true, force: true });
  });
  // Once, for the store keeps what was done.
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 80, maxLength: 80 }), (steps) => play(stores, steps)),
    { numRuns: 1, endOnFailure: true },
  );
  t.pass();
});
