import { type Test, test } from 'tap';
import type { PostgresStoreSettings, StoreSettings } from '../../src/config/types.js';
import { GatewayError } from '../../src/errors.js';
import { createStore } from '../../src/store/create.js';
import type { Store } from '../../src/store/store.js';
import { eventually } from '../support/eventually.js';
import { increment } from './store-process.js';
import { startStoreProcess } from './store-processes.js';

export interface StoreSuite {
  /** The data that the tests share; each has its own ids. */
  readonly settings: StoreSettings;
  /** Why the tests cannot run, or false. */
  readonly skip: string | false;
  /** Also tests with other processes, which takes a while. */
  readonly processes: boolean;
}

/** Registers a test with two stores on the same data. */
type RegisterTest = (title: string, body: (t: Test, store: Store, other: Store) => Promise<void>) => void;

const minuteMs = 60_000;

/** Settings of a store in a PostgreSQL server of the tests. */
export function postgresSettings(port: number): PostgresStoreSettings {
  return {
    kind: 'postgres',
    host: '127.0.0.1',
    port,
    database: 'postgres',
    username: 'postgres',
    password: null,
    others: [],
    tls: 'off',
    schema: 'gateway',
    timeoutMs: 20_000,
    taskDays: 7,
  };
}

/** Registers the tests that every store passes. */
export function testStore(name: string, { settings, skip, processes }: StoreSuite): void {
  const storeTest: RegisterTest = (title, body) =>
    void test(`${name}: ${title}`, { skip }, async (t) => {
      const [store, other] = [createStore(settings), createStore(settings)];
      t.teardown(() => Promise.all([store.close(), other.close()]));
      await body(t, store, other);
    });

  if (processes) testProcesses(settings, storeTest);

  storeTest('a record that was created is there for everybody, once', async (t, store, other) => {
    t.equal(await store.get('plain', 'a'), null);
    t.equal(await store.create('plain', 'a', 'first', minuteMs), true);
    t.equal(await other.create('plain', 'a', 'second', minuteMs), false);
    t.equal((await other.get('plain', 'a'))?.value, 'first');
    t.equal(await other.get('another', 'a'), null, 'a collection is a world of its own');
  });

  storeTest('a record is replaced only by one who knows its revision', async (t, store, other) => {
    await store.create('plain', 'b', '1', minuteMs);
    const revision = (await store.get('plain', 'b'))?.revision ?? 0;
    t.equal(await other.replace('plain', 'b', '2', revision, minuteMs), true);
    t.equal(await store.replace('plain', 'b', '3', revision, minuteMs), false);
    t.same(await store.get('plain', 'b'), { value: '2', revision: revision + 1 });
    t.equal(await store.replace('plain', 'none', '1', revision, minuteMs), false);
  });

  storeTest('a record made anew does not take changes of the one before', async (t, store) => {
    await store.create('plain', 'c', '1', minuteMs);
    const revision = (await store.get('plain', 'c'))?.revision ?? 0;
    await store.remove('plain', 'c');
    await store.remove('plain', 'c');
    t.equal(await store.get('plain', 'c'), null);
    t.equal(await store.create('plain', 'c', '2', minuteMs), true);
    t.equal(await store.replace('plain', 'c', '3', revision, minuteMs), false);
  });

  storeTest('an expired record is gone, and its id is free', async (t, store) => {
    const ids = async () => (await store.list('short', 10, null)).records.map(({ id }) => id);
    await store.create('short', 'a', '1', 20);
    await store.create('short', 'b', '1', minuteMs);
    await eventually(async () => (await store.get('short', 'a')) === null);
    t.same(await ids(), ['b']);
    t.equal(await store.create('short', 'a', '2', minuteMs), true);
    t.equal((await store.get('short', 'a'))?.value, '2');
    t.same((await ids()).sort(), ['a', 'b']);
    await store.sweep();
    t.same((await ids()).sort(), ['a', 'b']);
    const revision = (await store.get('short', 'b'))?.revision ?? 0;
    await store.replace('short', 'b', '2', revision, 1);
    await eventually(async () => (await store.get('short', 'b')) === null);
    t.equal(await store.replace('short', 'b', '3', revision + 1, minuteMs), false);
    await store.sweep();
    t.same(await ids(), ['a']);
  });

  storeTest('a list has every record once, the first to go first', async (t, store) => {
    const ids = Array.from({ length: 25 }, (_, index) => `id-${index}`);
    await Promise.all(ids.map((id, index) => store.create('listed', id, `v${id}`, minuteMs + index * 1000)));
    // Removed, moved to the end, and in another collection whose name begins alike.
    await store.remove('listed', 'id-3');
    const moved = await store.get('listed', 'id-4');
    await store.replace('listed', 'id-4', 'vid-4', moved?.revision ?? 0, 2 * minuteMs);
    await store.create('listed-too', 'id-1', '', minuteMs);
    const seen: string[] = [];
    let from: string | null = null;
    do {
      const page = await store.list('listed', 7, from);
      t.ok(page.records.length <= 7);
      for (const record of page.records) {
        t.equal(record.value, `v${record.id}`);
        t.ok(record.revision > 0);
        seen.push(record.id);
      }
      from = page.next;
    } while (from !== null);
    const kept = ids.filter((id) => id !== 'id-3' && id !== 'id-4');
    t.same(seen, [...kept, 'id-4']);
    t.same(await store.list('empty', 7, null), { records: [], next: null });
  });

  storeTest('a list from its end has every record once, the last to go first', async (t, store) => {
    // Many expire within one millisecond, so that their ids decide the order, across pages.
    const ids = Array.from({ length: 25 }, (_, index) => `id-${index}`);
    await Promise.all(ids.map((id) => store.create('back', id, `v${id}`, minuteMs)));
    await store.create('back', 'later', 'vlater', 2 * minuteMs);
    await store.create('back', 'sooner', 'vsooner', minuteMs / 2);
    await store.create('back', 'gone', '', 1);
    for (const name of ['bac', 'back-too', 'a', 'z']) await store.create(name, 'id-1', '', minuteMs);
    await eventually(async () => (await store.get('back', 'gone')) === null);
    for (const limit of [1, 7, 27, 100]) {
      const seen: string[] = [];
      let from: string | null = null;
      do {
        const page = await store.list('back', limit, from, 'last-to-go');
        t.ok(page.records.length <= limit);
        for (const record of page.records) {
          t.equal(record.value, `v${record.id}`);
          seen.push(record.id);
        }
        from = page.next;
      } while (from !== null);
      t.same([seen[0], seen.at(-1)], ['later', 'sooner']);
      t.equal(seen.length, 27);
      t.same([...seen].sort(), [...ids, 'later', 'sooner'].sort());
      const forward = (await store.list('back', 100, null)).records.map(({ id }) => id);
      t.same(seen, forward.reverse());
    }
    t.same(await store.list('nothing', 7, null, 'last-to-go'), { records: [], next: null });
  });

  storeTest('a claim has one winner until its time is over', async (t, store, other) => {
    t.equal(await store.claim('poll:1', minuteMs), true);
    t.equal(await other.claim('poll:1', minuteMs), false);
    t.equal(await store.claim('poll:1', 1), false);
    t.equal(await other.claim('poll:2', 20), true);
    await eventually(() => store.claim('poll:2', minuteMs));
    await store.sweep();
    t.equal(await other.claim('poll:2', minuteMs), false, 'a sweep leaves what is still held');
    t.equal(await store.claim('poll:3', 60 * minuteMs), true);
    t.equal(await other.claim('poll:3', 60 * minuteMs), false);
    t.equal(await other.claim('poll:3', minuteMs), true, 'what a clock has made that was set back meanwhile');
    t.equal(await store.claim('poll:3', minuteMs), false);
  });

  storeTest('any text is an id, and any text a value', async (t, store, other) => {
    const ids = ['', ':', 'a:b', 'a', 'ä€😀', ' \n\0', '{x}', '"\\', 'l'.repeat(600), 'l'.repeat(5000)];
    ids.push(`${'l'.repeat(4999)}m`, '€'.repeat(166), '€'.repeat(167), '__proto__');
    const values = new Map(ids.map((id, index) => [id, `${index} ä€😀\0 ${id}`]));
    for (const [id, value] of values) await store.create('odd', id, value, minuteMs);
    for (const [id, value] of values) t.equal((await other.get('odd', id))?.value, value);
    const listed = await other.list('odd', 100, null);
    t.same(listed.records.map(({ id }) => id).sort(), [...ids].sort());
    t.ok(listed.records.every(({ leftMs }) => leftMs > 0 && leftMs <= minuteMs));
    const claimed = async (by: Store) => Promise.all(ids.map((id) => by.claim(id, minuteMs)));
    t.ok((await claimed(store)).every((won) => won));
    t.notOk((await claimed(other)).some((won) => won));
    for (const id of ids) await other.remove('odd', id);
    t.same((await store.list('odd', 100, null)).records, []);
  });

  storeTest('a value of a megabyte comes back whole', async (t, store, other) => {
    const value = 'ä€😀0'.repeat(100_000);
    t.equal(await store.create('big', 'a', value, minuteMs), true);
    const record = await other.get('big', 'a');
    t.ok(record?.value === value);
    t.equal(await other.replace('big', 'a', `${value}!`, record?.revision ?? 0, minuteMs), true);
    t.ok((await store.get('big', 'a'))?.value === `${value}!`);
  });

  storeTest('no update is lost between two that change the same record', async (t, store, other) => {
    await store.create('numbers', 'near', '0', minuteMs);
    await Promise.all([increment(store, 'near', 40), increment(other, 'near', 40)]);
    t.equal((await store.get('numbers', 'near'))?.value, '80');
  });

  storeTest('a closed store refuses every call, and closing again is nothing', async (t, store) => {
    const last = store.get('plain', 'a');
    await Promise.all([store.close(), store.close()]);
    await store.close();
    await t.resolves(last, 'what was under way has ended');
    const calls = [
      store.get('plain', 'a'),
      store.create('plain', 'a', '', minuteMs),
      store.replace('plain', 'a', '', 1, minuteMs),
      store.remove('plain', 'a'),
      store.list('plain', 1, null),
      store.claim('a', minuteMs),
      store.sweep(),
    ];
    for (const call of calls) await unavailable(t, call);
  });
}

function testProcesses(settings: StoreSettings, storeTest: RegisterTest): void {
  storeTest('processes that race lose no update, and no two win a claim', async (t, store) => {
    await store.create('numbers', 'far', '0', minuteMs);
    const counting = ['a', 'b', 'c'].map(() =>
      startStoreProcess({ settings, does: 'increment', id: 'far', times: 30 }),
    );
    const names = Array.from({ length: 40 }, (_, index) => `race-${index}`);
    const claiming = ['a', 'b', 'c'].map(() => startStoreProcess({ settings, does: 'claim', names }));
    for (const { exited } of [...counting, ...claiming]) t.equal(await exited, 0);
    t.equal((await store.get('numbers', 'far'))?.value, '90');
    t.same(claiming.flatMap(({ told }) => told).sort(), [...names].sort());
  });

  storeTest('what a killed process was told to be kept is kept, and others go on', async (t, store) => {
    const [victim, other] = ['victim', 'other'].map((who) =>
      startStoreProcess({ settings, does: 'create', name: who }),
    );
    if (victim === undefined || other === undefined) throw new Error('two processes were started');
    await Promise.all([victim.untilTold(5), other.untilTold(5)]);
    victim.kill();
    t.equal(await victim.exited, null);
    await other.untilTold(other.told.length + 20);
    other.kill();
    await other.exited;
    const told = [...victim.told, ...other.told];
    const kept = await Promise.all(told.map((id) => store.get('created', id)));
    t.same(
      kept.map((record) => record?.value),
      told,
    );
  });
}

/** Checks that a call is refused because the store cannot be reached. */
export async function unavailable(t: Test, call: Promise<unknown>): Promise<GatewayError | null> {
  try {
    await call;
  } catch (error) {
    t.match(error, { kind: 'store_unavailable', status: 503, retryAfter: 1 });
    return error instanceof GatewayError ? error : null;
  }
  t.fail('the call was not refused');
  return null;
}
