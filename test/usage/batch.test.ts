import { test } from 'tap';
import { UsageBatch } from '../../src/usage/batch.js';
import { pageSpanMs } from '../../src/usage/page.js';
import { readPage } from '../../src/usage/read-page.js';
import { usageNote } from './entries.js';

const midnight = Date.UTC(2026, 2, 10);

test('a batch has pages of calls that ended within a second, each with the time of its first', async (t) => {
  const batch = new UsageBatch(() => {});
  const times = [0, 5, 3, pageSpanMs - 1, pageSpanMs, pageSpanMs + 1, 0, 1].map((after) => midnight + after);
  for (const at of times) t.ok(batch.add(usageNote({ at })));
  t.equal(batch.entries, times.length);
  const { lines } = batch.end();
  t.same(
    lines.map(({ at }) => at - midnight),
    [0, pageSpanMs, 0],
    'a clock that was put back begins a page',
  );
  t.same(
    lines.flatMap(({ value }) => readPage(value).map(({ at }) => at)),
    times,
  );
});

test('many calls of one moment are on several pages', async (t) => {
  const batch = new UsageBatch(() => {});
  for (let call = 0; call < 1200; call++) batch.add(usageNote({ requestId: `${call}` }));
  const pages = batch.end().lines.map(({ value }) => readPage(value));
  t.same(
    pages.map(({ length }) => length),
    [500, 500, 200],
  );
  t.same(
    pages.flat().map(({ requestId }) => Number(requestId)),
    Array.from({ length: 1200 }, (_, call) => call),
  );
});

test('calls around midnight count for their days, in whatever order they come', async (t) => {
  const batch = new UsageBatch(() => {});
  for (const after of [-1, 0, -1, 1, 1]) batch.add(usageNote({ at: midnight + after }));
  const calls = batch.end().sums.map(({ id, add }) => [id, add.calls]);
  t.same(calls, [
    ['2026-03-09/nteam-a/nsim-text', 2],
    ['2026-03-10/nteam-a/nsim-text', 3],
  ]);
});

test('a call without a time is not taken', async (t) => {
  const batch = new UsageBatch(() => {});
  for (const at of [Number.NaN, -1, 0.5, 1e300]) t.notOk(batch.add(usageNote({ at })));
  t.equal(batch.entries, 0);
  t.same(batch.end(), { lines: [], sums: [] });
});
