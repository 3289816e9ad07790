import { test } from 'tap';
import { storedLine } from '../../src/store/ledger-format.js';
import { BatchMemory } from '../../src/usage/batch-memory.js';
import { tableSpanMs } from '../../src/usage/call-table.js';
import { readPage } from '../../src/usage/queries.js';
import { OpenBatch } from '../../src/usage/writer.js';
import { sumsById } from '../suites/ledger-sums.js';
import { addUsage, uncounted } from './records.js';

const midnight = Date.UTC(2026, 2, 10);

test('a batch has pages of calls that ended within a second, each with the time of its first', async (t) => {
  const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
  const times = [0, 5, 3, tableSpanMs - 1, tableSpanMs, tableSpanMs + 1, 0, 1].map(
    (after) => midnight + after,
  );
  for (const at of times) t.ok(addUsage(batch, { at }));
  t.equal(batch.records, times.length);
  const { lines } = batch.seal();
  t.same(
    lines.map(({ at }) => at - midnight),
    [0, tableSpanMs, 0],
    'a clock that was put back begins a page',
  );
  t.same(
    lines.flatMap((line) => readPage(storedLine(line).value).map(({ at }) => at)),
    times,
  );
});

test('many calls of one moment are on several pages', async (t) => {
  const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
  for (let call = 0; call < 2200; call++) addUsage(batch, { requestId: `${call}` });
  const pages = batch.seal().lines.map((line) => readPage(storedLine(line).value));
  t.same(
    pages.map(({ length }) => length),
    [500, 500, 500, 500, 200],
  );
  t.same(
    pages.flat().map(({ requestId }) => Number(requestId)),
    Array.from({ length: 2200 }, (_, call) => call),
  );
});

test('calls around midnight count for their days, in whatever order they come', async (t) => {
  const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
  for (const after of [-1, 0, -1, 1, 1]) addUsage(batch, { at: midnight + after });
  const calls = [...sumsById(batch.seal().sums)].map(([id, { calls }]) => [id, calls]);
  t.same(calls, [
    ['2026-03-09/nteam-a/nsim-text', 2],
    ['2026-03-10/nteam-a/nsim-text', 3],
  ]);
});

test('the sums are the same, however often calls were counted in between', async (t) => {
  const sums = (asks: boolean) => {
    const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
    for (let call = 0; call < 10; call++) {
      addUsage(batch, { keyId: `${call % 3}`, inputTokens: call, mediaSeconds: 1.0004, outcome: 'refused' });
      if (asks) batch.count();
    }
    return [...sumsById(batch.seal().sums)];
  };
  t.same(sums(true), sums(false));
  t.match(sums(true)[0]?.[1], { calls: 4, refused: 4, inputTokens: 18, mediaMs: 4000 });
});

test('a call without a time is not taken', async (t) => {
  const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
  for (const at of [Number.NaN, -1, 0.5, 1e300]) t.notOk(addUsage(batch, { at }));
  t.equal(batch.records, 0);
  const { lines, sums } = batch.seal();
  t.same(lines, []);
  t.same(sums.ids, []);
});
