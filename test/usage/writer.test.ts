import { createHash } from 'node:crypto';
import { test } from 'tap';
import { UsageWriter, type WriterBounds } from '../../src/usage/writer.js';
import { sumsById, sumTable } from '../suites/ledger-sums.js';
import { eventually } from '../support/eventually.js';
import { ledgerDouble, requestsOf, unreachable } from './ledger-double.js';
import { addUsage, noTokens, uncounted } from './records.js';

const retention = { lineMs: 5000, sumMs: 9000 };
const noSums = sumTable(1, []);

/** A writer on a ledger in memory, which writes soon and tries again soon. */
function open(bounds: Partial<WriterBounds> = {}) {
  const ledger = ledgerDouble();
  const dropped: number[] = [];
  const failures: unknown[] = [];
  const counted: string[] = [];
  const writer = new UsageWriter(
    {
      store: ledger,
      retention: () => retention,
      record: ({ model, keyId }, calls) => {
        counted.push(`${keyId} ${model}${calls === 1 ? '' : ` ${calls}`}`);
        return uncounted();
      },
      onDropped: (records) => dropped.push(records),
      onFailure: (error) => failures.push(error),
      onTaken: () => {},
    },
    { flushMs: 5, backOffMs: 1, ...bounds },
  );
  return { ledger, writer, failures, counted, dropped: () => dropped.reduce((sum, count) => sum + count, 0) };
}

function add(writer: UsageWriter, first: number, behind: number): void {
  for (let id = first; id < behind; id++) addUsage(writer, { requestId: `${id}` });
}

function ids(first: number, behind: number): string[] {
  return Array.from({ length: behind - first }, (_, index) => `${first + index}`);
}

test('records reach the ledger by themselves, together', async (t) => {
  const { ledger, writer, dropped } = open();
  add(writer, 0, 3);
  t.equal(writer.waiting(), 3);
  t.equal(ledger.offered.length, 0, 'nothing is done at once');
  await eventually(() => ledger.taken.length === 1);
  t.same(requestsOf(ledger.taken), ids(0, 3));
  add(writer, 3, 4);
  await eventually(() => ledger.taken.length === 2);
  await eventually(() => writer.waiting() === 0);
  const [first, second] = ledger.taken;
  t.equal(first?.writer, second?.writer);
  t.ok((second?.number ?? 0) > (first?.number ?? 0));
  t.equal(first?.lineTtlMs, 5000);
  t.equal(dropped(), 0);
});

test('every call is counted once: when the metrics are asked for, or when it goes', async (t) => {
  const { ledger, writer, counted } = open({ batchRecords: 4, flushMs: 60_000 });
  ledger.holds = true;
  const names = (first: number, behind: number) => ids(first, behind).map((id) => `team-a ${id}`);
  const note = (first: number, behind: number) => {
    for (const model of ids(first, behind)) t.ok(addUsage(writer, { model }));
  };
  note(0, 2);
  t.same(counted, [], 'not one by one');
  writer.count();
  t.same(counted, names(0, 2));
  note(2, 5);
  t.same(counted, names(0, 4), 'a batch that waits for the store has been counted');
  writer.count();
  writer.count();
  t.same(counted, names(0, 5));
  ledger.holds = false;
  for (const go of ledger.held) go();
  await writer.close(60_000);
  t.notOk(addUsage(writer), 'whoever adds it then counts it');
  t.same(counted, names(0, 5));
});

test('sums are made of day, key and model', async (t) => {
  const { ledger, writer } = open();
  const late = Date.UTC(2026, 2, 10);
  addUsage(writer, { at: late - 1 });
  addUsage(writer, { at: late - 1, outcome: 'refused', ...noTokens, costNanoUsd: 0 });
  addUsage(writer, { at: late, keyId: null, model: null, outcome: 'client_gone', tokensKnown: 'partial' });
  addUsage(writer, { at: late, model: 'a/b', mediaSeconds: 1.5, durationMs: 0.5 });
  await writer.flush();
  const table = ledger.taken[0]?.sums ?? noSums;
  const sums = sumsById(table);
  t.same([...sums.keys()].sort(), [
    '2026-03-09/nteam-a/nsim-text',
    '2026-03-10//',
    '2026-03-10/nteam-a/na%2Fb',
  ]);
  t.match(sums.get('2026-03-09/nteam-a/nsim-text'), {
    calls: 2,
    refused: 1,
    inputTokens: 100,
    outputTokens: 20,
    costNanoUsd: 1500,
  });
  t.equal(table.ttlMs, 9000);
  t.match(sums.get('2026-03-10//'), { calls: 1, clientGone: 1, inexact: 1 });
  t.match(sums.get('2026-03-10/nteam-a/na%2Fb'), { calls: 1, mediaMs: 1500 });
  t.notOk(table.names.includes('incomplete'), 'what is zero for all is not written');
});

test('a full batch does not wait, and there is one append at a time', async (t) => {
  const { ledger, writer } = open({ batchRecords: 10, flushMs: 60_000 });
  ledger.holds = true;
  add(writer, 0, 35);
  await eventually(() => ledger.held.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 10));
  t.equal(ledger.offered.length, 1);
  ledger.holds = false;
  ledger.held[0]?.();
  await writer.flush();
  t.same(
    ledger.taken.map((batch) => requestsOf([batch]).length),
    [10, 10, 10, 5],
  );
  t.same(requestsOf(ledger.taken), ids(0, 35));
  t.equal(ledger.mostAtOnce, 1);
});

test('calls of many keys go in batches of no more than some sums, and each is counted and added up once', async (t) => {
  const { ledger, writer, counted } = open({ batchSums: 200, flushMs: 60_000 });
  for (let id = 0; id < 900; id++) addUsage(writer, { requestId: `${id}`, keyId: `team-${id}` });
  await eventually(() => ledger.taken.length >= 3);
  await writer.flush();
  const sums = ledger.taken.map((batch) => batch.sums.ids);
  t.ok(
    sums.every(({ length }) => length <= 325),
    `${sums.map(({ length }) => length)}`,
  );
  t.equal(new Set(sums.flat()).size, 900);
  t.equal(sums.flat().length, 900);
  t.same(requestsOf(ledger.taken), ids(0, 900));
  t.equal(new Set(counted).size, 900);
  t.equal(counted.length, 900);
});

test('the pages of a stored batch are memory for later ones, those of a batch that waits are not', async (t) => {
  const { ledger, writer } = open({ batchRecords: 300, flushMs: 60_000 });
  // Such ids make a page of three hundred calls large.
  const requests = ids(0, 900).map((id) => createHash('sha256').update(id).digest('hex'));
  const addAll = (all: readonly string[]): void => {
    for (const requestId of all) addUsage(writer, { requestId });
  };
  const memory: unknown[] = [];
  const { append } = ledger;
  ledger.append = (name, batch, tries) => {
    memory.push(batch.lines[0]?.value instanceof Uint8Array ? batch.lines[0].value.buffer : null);
    return append(name, batch, tries);
  };
  ledger.holds = true;
  addAll(requests.slice(0, 600));
  await eventually(() => ledger.held.length === 1);
  ledger.holds = false;
  ledger.held[0]?.();
  await writer.flush();
  addAll(requests.slice(600));
  await writer.flush();
  t.same(requestsOf(ledger.taken), requests);
  t.equal(memory.length, 3);
  t.type(memory[0], ArrayBuffer);
  t.not(memory[1], memory[0]);
  t.ok(memory.indexOf(memory[2]) < 2);
});

test('what comes while an append is slow goes together', async (t) => {
  const { ledger, writer } = open();
  ledger.holds = true;
  add(writer, 0, 1);
  await eventually(() => ledger.held.length === 1);
  for (let id = 1; id < 6; id++) {
    add(writer, id, id + 1);
    await new Promise((resolve) => setTimeout(resolve, 8));
  }
  ledger.holds = false;
  ledger.held[0]?.();
  await eventually(() => writer.waiting() === 0);
  t.same(requestsOf(ledger.taken), ids(0, 6));
  t.equal(ledger.taken.length, 2);
});

test('a batch that failed is sent again as it was, until it is taken', async (t) => {
  for (const takesFirst of [false, true]) {
    const { ledger, writer, failures, dropped } = open();
    ledger.failure = unreachable;
    ledger.takesFirst = takesFirst;
    add(writer, 0, 2);
    await eventually(() => failures.length >= 3);
    add(writer, 2, 4);
    ledger.failure = null;
    await writer.flush();
    t.same(requestsOf(ledger.taken), ids(0, 4), 'each once');
    t.equal(new Set(ledger.offered.slice(0, 3).map(({ number }) => number)).size, 1);
    t.ok(failures.every((failure) => failure === unreachable));
    t.equal(dropped(), 0);
  }
});

test('while the store fails the oldest are given up, and counted', async (t) => {
  const { ledger, writer, dropped } = open({ batchRecords: 10, mostWaiting: 30 });
  ledger.failure = unreachable;
  add(writer, 0, 10);
  await eventually(() => ledger.offered.length > 0);
  add(writer, 10, 105);
  t.ok(writer.waiting() <= 40, 'the batch under way and those behind it');
  t.equal(dropped() + writer.waiting(), 105);
  const kept = writer.waiting();
  ledger.failure = null;
  await writer.flush();
  const written = requestsOf(ledger.taken);
  t.same(written.slice(0, 10), ids(0, 10), 'nobody knows whether the batch under way was taken: it stays');
  t.same(written.slice(10), ids(105 - (kept - 10), 105));
});

test('what waits for a slow store is bounded by its bytes, and told', async (t) => {
  const mostWaitingBytes = 20_000;
  const { ledger, writer, dropped } = open({ batchRecords: 10, mostWaitingBytes });
  ledger.failure = unreachable;
  add(writer, 0, 10);
  await eventually(() => ledger.offered.length > 0);
  const ofOne = writer.waitingBytes();
  t.ok(ofOne > 100 && ofOne < 5000, `${ofOne} bytes`);
  add(writer, 10, 1000);
  t.ok(writer.waitingBytes() <= mostWaitingBytes + 2 * ofOne, `${writer.waitingBytes()} bytes`);
  t.ok(dropped() > 0);
  t.equal(dropped() + writer.waiting(), 1000);
  ledger.failure = null;
  await writer.flush();
  t.equal(writer.waitingBytes(), 0);
});

test('a flush of what is given up ends too', async (t) => {
  const { ledger, writer } = open({ batchRecords: 2, mostWaiting: 2, backOffMs: 60_000 });
  ledger.failure = unreachable;
  add(writer, 0, 2);
  await eventually(() => ledger.offered.length > 0);
  add(writer, 2, 3);
  const flushed = writer.flush();
  add(writer, 3, 6);
  await t.resolves(flushed);
  ledger.failure = null;
  await writer.close(60_000);
});

test('a batch that the store will never take is given up, and the next one goes', async (t) => {
  const { ledger, writer, failures, dropped } = open();
  ledger.failure = new RangeError('no');
  add(writer, 0, 3);
  await writer.flush();
  t.equal(failures.length, 1);
  t.equal(dropped(), 3);
  ledger.failure = null;
  add(writer, 3, 4);
  await writer.flush();
  t.same(requestsOf(ledger.taken), ['3']);
});

test('a record that cannot be written does not take others with it', async (t) => {
  const { ledger, writer, dropped } = open();
  add(writer, 0, 1);
  addUsage(writer, { at: Number.NaN });
  addUsage(writer, { requestId: 'odd', inputTokens: Number.NaN, bytesIn: -1, costNanoUsd: 1e300 });
  await writer.flush();
  t.same(requestsOf(ledger.taken), ['0'], 'a number that is none is not told as one');
  const [sum] = sumsById(ledger.taken[0]?.sums ?? noSums).values();
  t.equal(sum?.calls, 2);
  t.equal(dropped(), 1);
  t.equal(sum?.costNanoUsd, 1500, 'nor one that no call can have');
  t.equal(sum?.inputTokens, 100);
});

test('a flush without records is done', async (t) => {
  const { ledger, writer } = open();
  await writer.flush();
  await Promise.all([writer.close(1000), writer.close(1000)]);
  t.equal(ledger.offered.length, 0);
});

test('flushes in a row are each done', async (t) => {
  const { ledger, writer } = open({ flushMs: 60_000 });
  for (let id = 0; id < 20; id++) {
    add(writer, id, id + 1);
    await writer.flush();
  }
  t.same(requestsOf(ledger.taken), ids(0, 20));
});

test('a close writes what there is, and what comes later is counted', async (t) => {
  const { ledger, writer, dropped } = open({ batchRecords: 10 });
  add(writer, 0, 25);
  await writer.close(60_000);
  t.same(requestsOf(ledger.taken), ids(0, 25));
  t.equal(dropped(), 0);
  add(writer, 25, 27);
  t.equal(dropped(), 2);
});

test('a close does not wait for ever', async (t) => {
  const { ledger, writer, dropped } = open({ batchRecords: 10, backOffMs: 60_000 });
  ledger.failure = unreachable;
  add(writer, 0, 25);
  await writer.close(20);
  await eventually(() => writer.waiting() === 0);
  t.equal(dropped(), 25);
});

test('a close tries again soon, however long the store has failed, and takes what it accepts then', async (t) => {
  const { ledger, writer, dropped } = open({ batchRecords: 10, backOffMs: 60_000 });
  ledger.failure = unreachable;
  add(writer, 0, 25);
  await eventually(() => ledger.offered.length === 1);
  const closed = writer.close(60_000);
  // With the pauses of a store that fails for long, these would be half a minute.
  await eventually(() => ledger.offered.length > 10, { withinMs: 15_000 });
  ledger.failure = null;
  await closed;
  t.same(requestsOf(ledger.taken), ids(0, 25));
  t.equal(dropped(), 0);
});

test('a close that waits for the store can be shortened, and not prolonged', async (t) => {
  const { ledger, writer, dropped } = open({ batchRecords: 10 });
  ledger.failure = unreachable;
  add(writer, 0, 25);
  const closed = writer.close(3_600_000);
  await eventually(() => ledger.offered.length > 2);
  t.equal(dropped(), 0);
  await Promise.all([writer.close(20), writer.close(3_600_000), closed]);
  t.equal(dropped(), 25);
});
