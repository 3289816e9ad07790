import fc from 'fast-check';
import { test } from 'tap';
import { createRows, pageSpanMs, readPage, UsagePage } from '../../src/usage/page.js';
import { anyEntry, usageEntry } from './entries.js';

const noon = Date.UTC(2026, 2, 9, 12);

test('calls come back from their page as they were', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyEntry, fc.nat(pageSpanMs - 1)), { maxLength: 20 }), (calls) => {
      const entries = calls.map(([entry, after]) => ({ ...entry, at: noon + after }));
      const page = new UsagePage(noon, createRows());
      for (const entry of entries) page.add(entry);
      t.strictSame(readPage(page.text()), entries);
    }),
  );
});

test('calls of many keys, models and endings in turn come back as they were', async (t) => {
  const page = new UsagePage(noon, createRows());
  const entries = Array.from({ length: 200 }, (_, index) =>
    usageEntry({
      at: noon,
      requestId: `${index}`,
      keyId: index % 3 === 0 ? null : `key-${index % 7}`,
      model: `model-${index % 5}`,
      status: index % 2 === 0 ? 200 : 500,
      outcome: index % 4 === 0 ? 'refused' : 'complete',
      firstByteMs: index % 2 === 0 ? 0 : null,
    }),
  );
  for (const entry of entries) page.add(entry);
  t.strictSame(readPage(page.text()), entries);
});

test('a name stands in a page once', async (t) => {
  const page = new UsagePage(noon, createRows());
  const { groups } = usageEntry();
  for (let call = 0; call < 100; call++) page.add(usageEntry({ at: noon + call, bytesIn: call, groups }));
  t.equal(page.text().split('team-a').length, 2);
  t.ok(page.text().length < 100 * 100);
});

test('times are kept in whole microseconds', async (t) => {
  const page = new UsagePage(noon, createRows());
  page.add(usageEntry({ at: noon, durationMs: 1.234_567_8, firstByteMs: 0.000_4 }));
  t.match(readPage(page.text()), [{ durationMs: 1.235, firstByteMs: 0 }]);
});

test('a page has room for calls of one second, and for so many', async (t) => {
  const page = new UsagePage(noon, createRows());
  t.ok(page.hasRoom(noon));
  t.ok(page.hasRoom(noon + pageSpanMs - 1));
  t.notOk(page.hasRoom(noon + pageSpanMs));
  t.notOk(page.hasRoom(noon - 1), 'a clock that was put back');
  let calls = 0;
  for (; calls < 1000 && page.hasRoom(noon); calls++) page.add(usageEntry({ at: noon }));
  t.equal(calls, 200);
  t.equal(readPage(page.text()).length, calls);
});

test('what is damaged is left out, and what it stands beside is not', async (t) => {
  const page = new UsagePage(noon, createRows());
  for (const requestId of ['a', 'b', 'c']) page.add(usageEntry({ at: noon, requestId, keyId: requestId }));
  const good = JSON.parse(page.text()) as { manners: unknown[]; ids: unknown[]; rows: unknown[] };
  const left = (change: object): string[] =>
    readPage(JSON.stringify({ ...good, ...change })).map(({ requestId }) => requestId);
  t.same(left({}), ['a', 'b', 'c']);
  t.same(left({ later: 1 }), ['a', 'b', 'c'], 'what a later version has added');
  t.same(left({ manners: [good.manners[0], null, good.manners[2]] }), ['a', 'c']);
  t.same(left({ manners: [good.manners[0], 7, { ...(good.manners[2] as object), status: '200' }] }), ['a']);
  t.same(left({ ids: ['a', 7, 'c'] }), ['a', 'c']);
  t.same(left({ rows: good.rows.slice(0, -1) }), ['a', 'b']);
  for (let column = 0; column < 14; column++) {
    const rows = good.rows.with(14 + column, null);
    t.same(left({ rows }), ['a', 'c'], `column ${column}`);
  }
  for (const change of [
    { v: 2 },
    { at: 'noon' },
    { at: -1 },
    { manners: {} },
    { ids: null },
    { rows: 'x' },
  ]) {
    t.same(left(change), []);
  }
  for (const text of ['', '{', 'null', '1', '[]', page.text().slice(0, -1)]) t.same(readPage(text), []);
});
