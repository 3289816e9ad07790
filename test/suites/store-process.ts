import { once } from 'node:events';
import { join } from 'node:path';
import type { StoreSettings } from '../../src/config/types.js';
import type { GatewayError } from '../../src/errors.js';
import { createStore } from '../../src/store/create.js';
import { openEnvironment } from '../../src/store/environment.js';
import type { OwnedRecords } from '../../src/store/owned.js';
import type { Store } from '../../src/store/store.js';

/** Runs as a separate process, started by the suite of the stores: works on a store as its first argument says. */

export type StoreOrder = OpenOrder | WorkOrder;

/** Opens and closes an environment this many times. */
interface OpenOrder {
  readonly does: 'open';
  readonly path: string;
  readonly times: number;
}

type WorkOrder = { readonly settings: StoreSettings } & (
  | { readonly does: 'increment'; readonly id: string; readonly times: number }
  | { readonly does: 'claim'; readonly names: readonly string[] }
  | { readonly does: 'create'; readonly name: string }
  | { readonly does: 'keep'; readonly owner: string; readonly bytes: number }
  | { readonly does: 'fill' }
  | { readonly does: 'hold'; readonly path: string; readonly environment?: 'records' | 'owned' }
  | { readonly does: 'leave' }
);

/** Adds to the number in a record repeatedly, until every addition was accepted. */
export async function increment(store: Store, id: string, times: number): Promise<void> {
  for (let done = 0; done < times; ) {
    const record = await store.get('numbers', id);
    if (record === null) throw new Error(`the record ${id} is gone`);
    const next = `${Number(record.value) + 1}`;
    if (await store.replace('numbers', id, next, record.revision, 60_000)) done += 1;
  }
}

/** Creates records without end, and prints the id of each that the store has. */
async function createForEver(store: Store, name: string, tell: (id: string) => void): Promise<never> {
  for (let number = 0; ; number += 1) {
    const id = `${name}-${number}`;
    if (await store.create('created', id, id, 60_000)) tell(id);
  }
}

/** Keeps records of an owner without end, two at a time, and prints the number of each pair that the store has. */
async function keepForEver(
  owned: OwnedRecords,
  { owner, bytes }: { owner: string; bytes: number },
  tell: (number: string) => void,
): Promise<never> {
  const most = { owner: bytes, all: 2 * bytes };
  for (let number = 0; ; number += 1) {
    const records = ['a', 'b'].map((half) => ({ id: `${half}${number}`, value: 'x'.repeat(number % 5000) }));
    if (await owned.keep(owner, records, 60_000, most)) tell(`${number}`);
  }
}

/**
 * Creates records until the disk is full, reads one of them, and continues when told to.
 */
async function fill(store: Store, tell: (line: string) => void): Promise<void> {
  const value = 'x'.repeat(65_536);
  const put = (number: number) => store.create('filling', `${number}`, value, 60_000);
  let created = 0;
  for (let failure: GatewayError | null = null; failure === null; ) {
    try {
      await put(created);
      created += 1;
    } catch (error) {
      failure = error as GatewayError;
      tell(`${failure.kind}: ${String(failure.cause)}`);
    }
  }
  tell((await store.get('filling', '0'))?.value === value ? 'it can still be read' : 'it is gone');
  for (let hasRoom = false; !hasRoom; ) {
    await once(process, 'message');
    try {
      tell((await put(created)) ? 'there is room again' : 'it is there already');
      hasRoom = true;
    } catch (error) {
      tell(String((error as GatewayError).cause));
    }
  }
}

/** Takes the lock of the writers, and keeps it until it is killed. */
async function hold(folder: string, tell: (line: string) => void): Promise<void> {
  const { open } = await import('lmdb');
  openEnvironment(open, folder, { durability: 'commit' }).change(() => {
    tell('it is held');
    const nothing = new Int32Array(new SharedArrayBuffer(4));
    const parent = process.ppid;
    // A test that was killed itself kills nobody any more.
    while (process.ppid === parent) Atomics.wait(nothing, 0, 0, 200);
    process.kill(process.pid, 'SIGKILL');
  });
}

async function openOften({ path, times }: OpenOrder): Promise<void> {
  const { open } = await import('lmdb');
  for (let done = 0; done < times; done += 1) openEnvironment(open, path, { durability: 'none' }).close();
}

/** Exits during a change. */
async function leave(store: Store, tell: (line: string) => void): Promise<void> {
  await store.get('none', 'none');
  tell('it is there');
  await once(process, 'message');
  void store.create('left', 'a', '', 60_000);
  // Time to begin: the earlier it exits, the less can go wrong.
  setTimeout(() => {
    tell('it leaves');
    process.exit(7);
  }, 100);
  await new Promise(() => {});
}

async function obey(order: WorkOrder): Promise<void> {
  const store = createStore(order.settings);
  const tell = (line: string): void => void process.send?.(line);
  if (order.does === 'increment') await increment(store, order.id, order.times);
  else if (order.does === 'create') await createForEver(store, order.name, tell);
  else if (order.does === 'keep' && store.owned !== null) await keepForEver(store.owned, order, tell);
  else if (order.does === 'fill') await fill(store, tell);
  else if (order.does === 'leave') await leave(store, tell);
  else if (order.does === 'hold') await hold(join(order.path, order.environment ?? 'records'), tell);
  else if (order.does === 'claim') {
    for (const name of order.names) if (await store.claim(name, 60_000)) tell(name);
  }
  await store.close();
  process.disconnect();
}

const [, script, order] = process.argv;
if (order !== undefined && script === import.meta.filename) {
  const given = JSON.parse(order) as StoreOrder;
  await (given.does === 'open' ? openOften(given) : obey(given));
}
