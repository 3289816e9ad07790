import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Test, test } from 'tap';
import { createStore } from '../../src/store/create.js';
import type { Ledger, LedgerBatch, LedgerLine, Store } from '../../src/store/store.js';
import { random } from '../support/seed.js';
import { batchLines, countedBatch, type LedgerOrder } from './ledger-process.js';
import { sumTable } from './ledger-sums.js';
import { type StoreSuite, unavailable } from './store.js';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

type LedgerStore = Store & Ledger;

/** Makes a batch from the part that a test sets. */
export function ledgerBatch(change: Partial<LedgerBatch>): LedgerBatch {
  return { writer: 'w', number: 1, lines: [], lineTtlMs: dayMs, sums: sumTable(minuteMs, []), ...change };
}

/** Reads every line of a range, in pages. */
export async function allLines(
  store: Ledger,
  ledger: string,
  { from = 0, until = Number.POSITIVE_INFINITY, limit = 7 } = {},
): Promise<LedgerLine[]> {
  const lines: LedgerLine[] = [];
  let next: string | null = null;
  do {
    const page = await store.readLines(ledger, { from, until }, limit, next);
    if (page.lines.length > limit) throw new Error('a page is too long');
    lines.push(...page.lines);
    next = page.next;
  } while (next !== null);
  return lines;
}

/** Reads every sum of a range, in pages. */
export async function allSums(
  store: Ledger,
  ledger: string,
  { from = '', until = null as string | null, limit = 3 } = {},
): Promise<Map<string, Readonly<Record<string, number>>>> {
  const sums = new Map<string, Readonly<Record<string, number>>>();
  let next: string | null = null;
  do {
    const page = await store.readSums(ledger, { from, until }, limit, next);
    for (const { id, values } of page.sums) {
      if (sums.has(id)) throw new Error(`${id} comes twice`);
      sums.set(id, values);
    }
    next = page.next;
  } while (next !== null);
  return sums;
}

/** Registers the tests that the ledgers of every store pass. */
export function testLedger(name: string, { settings, skip, processes }: StoreSuite): void {
  const ledgerTest = (
    title: string,
    body: (t: Test, store: LedgerStore, other: LedgerStore) => Promise<void>,
  ): void =>
    void test(`${name}: ${title}`, { skip }, async (t) => {
      const [store, other] = [createStore(settings), createStore(settings)];
      t.teardown(() => Promise.all([store.close(), other.close()]));
      await body(t, store, other);
    });

  ledgerTest('what was appended is there for everybody', async (t, store, other) => {
    const now = Date.now();
    t.same(await store.readLines('plain', { from: 0, until: now }, 10, null), { lines: [], next: null });
    t.same(await store.readSums('plain', { from: '', until: null }, 10, null), { sums: [], next: null });
    const lines = [
      { at: now, value: 'first' },
      { at: now, value: '' },
      { at: now - 1, value: 'ä€😀 "\n\0' },
    ];
    const sums = sumTable(minuteMs, [{ id: 'a', add: { calls: 2, cost: 7 } }]);
    t.equal(await store.append('plain', ledgerBatch({ lines, sums })), true);
    t.same(await allLines(other, 'plain'), [lines[2], lines[0], lines[1]]);
    t.same([...(await allSums(other, 'plain'))], [['a', { calls: 2, cost: 7 }]]);
    t.same(await allLines(other, 'another'), []);
    t.equal((await allSums(other, 'another')).size, 0);
  });

  ledgerTest('a batch that was taken is ignored, and so is one before it', async (t, store, other) => {
    const batch = (writer: string, number: number) =>
      ledgerBatch({
        writer,
        number,
        lines: [{ at: Date.now(), value: `${writer}${number}` }],
        sums: sumTable(minuteMs, [{ id: 'x', add: { calls: 1 } }]),
      });
    const both = await Promise.all([
      store.append('twice', batch('a', 1)),
      other.append('twice', batch('a', 1)),
    ]);
    t.same(both.sort(), [false, true]);
    t.equal(await store.append('twice', batch('a', 3)), true);
    t.equal(await other.append('twice', batch('a', 2)), false);
    t.equal(await other.append('twice', batch('b', 1)), true, 'each writer has its own numbers');
    t.same((await allLines(store, 'twice')).map(({ value }) => value).sort(), ['a1', 'a3', 'b1']);
    t.same([...(await allSums(store, 'twice'))], [['x', { calls: 3 }]]);
  });

  ledgerTest('lines come in the order of their time, page by page, within the range', async (t, store) => {
    const start = Date.now() - minuteMs;
    // Many lines of the same millisecond by two writers, more than a page holds.
    const times = Array.from({ length: 60 }, (_, index) => start + Math.floor(((index * 37) % 60) / 20));
    const lines = times.map((at, index) => ({ at, value: `${index}` }));
    await store.append('ordered', ledgerBatch({ writer: 'a', lines: lines.slice(0, 40) }));
    await store.append('ordered', ledgerBatch({ writer: 'b', lines: lines.slice(40) }));
    const read = await allLines(store, 'ordered');
    t.same(
      read.map(({ at }) => at),
      [...times].sort((a, b) => a - b),
    );
    t.equal(new Set(read.map(({ value }) => value)).size, 60);
    for (const limit of [1, 20, 60, 100]) t.same(await allLines(store, 'ordered', { limit }), read);
    t.same(
      await allLines(store, 'ordered', { from: start + 1, until: start + 2 }),
      read.filter(({ at }) => at === start + 1),
    );
    t.same(await allLines(store, 'ordered', { from: start + 3, until: start + 2 }), []);
  });

  ledgerTest('sums come in the order of the bytes of their ids, within the range', async (t, store) => {
    const ids = ['', 'a', 'a/b', 'b', 'c{x}', 'ä', '😀', '\uffff', 'l'.repeat(500)];
    const sums = ids.map((id, index) => ({ id, add: { n: index + 1 } }));
    await store.append('listed', ledgerBatch({ sums: sumTable(minuteMs, sums) }));
    const sorted = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    for (const limit of [1, 4, 9, 20])
      t.same([...(await allSums(store, 'listed', { limit })).keys()], sorted);
    t.same([...(await allSums(store, 'listed', { from: 'a/', until: 'c{x}' })).keys()], ['a/b', 'b']);
    t.same([...(await allSums(store, 'listed', { from: 'z', until: 'b' })).keys()], []);
    t.same((await allSums(store, 'listed')).get('😀'), { n: 7 });
    await t.rejects(store.readSums('listed', { from: 'l'.repeat(501), until: null }, 1, null), RangeError);
  });

  ledgerTest('numbers are added exactly, and stop where they cannot be counted', async (t, store) => {
    const add = async (number: number, numbers: Record<string, number>) =>
      store.append('numbers', ledgerBatch({ number, sums: sumTable(minuteMs, [{ id: 's', add: numbers }]) }));
    const most = Number.MAX_SAFE_INTEGER;
    await add(1, { a: most - 5, b: 1, c: 3, ['__proto__']: 4 });
    await add(2, { a: 4, b: most, c: -5 });
    await add(3, {});
    const values = (await allSums(store, 'numbers')).get('s') ?? {};
    t.same(Object.entries(values).sort(), [
      ['__proto__', 4],
      ['a', most - 1],
      ['b', most],
      ['c', -2],
    ]);
  });

  ledgerTest('a batch that cannot be taken whole is refused whole', async (t, store) => {
    const lines = [{ at: Date.now(), value: 'a' }];
    const sum = { id: 's', add: { n: 1 } };
    const sums = sumTable(minuteMs, [sum]);
    for (const change of [
      { number: 0 },
      { number: 1.5 },
      { lines: [...lines, { at: 1.5, value: 'b' }] },
      { lines: [...lines, { at: Number.NaN, value: 'b' }] },
      { lineTtlMs: Number.NaN },
      { sums: sumTable(minuteMs, [sum, { id: 'u', add: { n: 0.5 } }]) },
      { sums: sumTable(minuteMs, [sum, { id: 'u', add: { n: Number.POSITIVE_INFINITY } }]) },
      { sums: sumTable(Number.NaN, [sum]) },
      { sums: { ...sums, names: [] } },
      { sums: sumTable(minuteMs, [sum, { ...sum, id: '€'.repeat(167) }]) },
    ]) {
      await t.rejects(store.append('refused', ledgerBatch({ lines, sums, ...change })), RangeError);
    }
    t.same(await allLines(store, 'refused'), []);
    t.equal((await allSums(store, 'refused')).size, 0);
  });

  ledgerTest('lines beyond their time are gone, by what was said last', async (t, store) => {
    const now = Date.now();
    const lines = [1, 10, 20, 30].map((days) => ({ at: now - days * dayMs + minuteMs, value: `${days}` }));
    const read = async () => (await allLines(store, 'kept')).map(({ value }) => value);
    await store.append('kept', ledgerBatch({ lines, lineTtlMs: 30 * dayMs }));
    t.same(await read(), ['30', '20', '10', '1']);
    await store.append('kept', ledgerBatch({ number: 2, lineTtlMs: 15 * dayMs }));
    t.same(await read(), ['10', '1']);
    await store.sweep();
    await store.append('kept', ledgerBatch({ number: 3, lineTtlMs: 40 * dayMs }));
    t.same(await read(), ['10', '1'], 'what was swept does not come back');
  });

  ledgerTest('a sweep takes many lines, and leaves those of other ledgers', async (t, store) => {
    const now = Date.now();
    const old = Array.from({ length: 4500 }, (_, index) => ({ at: now - 2 * dayMs + index, value: 'old' }));
    await store.append('swept', ledgerBatch({ lines: [...old, { at: now, value: 'new' }] }));
    await store.append('swept-too', ledgerBatch({ lines: old, lineTtlMs: 3 * dayMs }));
    await store.sweep();
    await store.append('swept', ledgerBatch({ number: 2, lineTtlMs: 4 * dayMs }));
    t.same(await allLines(store, 'swept', { limit: 5000 }), [{ at: now, value: 'new' }]);
    t.equal((await allLines(store, 'swept-too', { limit: 1000 })).length, 4500);
  });

  ledgerTest('a closed store refuses its ledgers', async (t, store) => {
    await store.close();
    await unavailable(t, store.append('plain', ledgerBatch({})));
    await unavailable(t, store.readLines('plain', { from: 0, until: 1 }, 1, null));
    await unavailable(t, store.readSums('plain', { from: '', until: null }, 1, null));
  });

  if (!processes) return;
  ledgerTest('whoever is killed leaves whole batches, and each once', async (t, store, other) => {
    const told = new Map<string, number>();
    for (let round = 0; round < 3; round++) {
      const writers = ['x', 'y'].map((who) =>
        startWriter({ settings, ledger: 'killed', writer: `${who}${round}` }),
      );
      await Promise.all(writers.map(({ begun }) => begun));
      await new Promise((resolve) => setTimeout(resolve, random() * 60));
      for (const writer of writers) told.set(writer.name, await writer.kill());
    }
    // The batch in progress may or may not be stored. A successor sends it again.
    for (const [writer, last] of told) await other.append('killed', countedBatch(writer, last + 1));
    const lines = await allLines(store, 'killed', { limit: 1000 });
    const sums = await allSums(store, 'killed');
    t.equal(new Set(lines.map(({ value }) => value)).size, lines.length, 'no line is there twice');
    t.equal(sums.get('all')?.lines, lines.length);
    for (const [writer, last] of told) {
      const own = lines.filter(({ value }) => value.startsWith(`${writer} `)).length;
      t.equal(sums.get(writer)?.lines, own);
      t.equal(own % batchLines, 0);
      t.ok(own >= (last + 1) * batchLines, `${own} lines, ${last} batches were told`);
    }
  });
}

interface LedgerWriter {
  readonly name: string;
  /** Resolves when the store has the first batch. */
  readonly begun: Promise<unknown>;
  /** @returns the last number that it has printed */
  kill(): Promise<number>;
}

const script = fileURLToPath(new URL('./ledger-process.js', import.meta.url));

function startWriter(order: LedgerOrder): LedgerWriter {
  const child: ChildProcess = fork(script, [JSON.stringify(order)], { execArgv: [] });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  let last = 0;
  child.on('message', (number) => {
    last = Number(number);
  });
  // Its last messages may arrive after its end.
  const over = Promise.all([once(child, 'close'), once(child, 'disconnect')]);
  return {
    name: order.writer,
    begun: Promise.race([once(child, 'message'), over]),
    async kill() {
      child.kill('SIGKILL');
      await over;
      process.removeListener('exit', killAtExit);
      return last;
    },
  };
}
