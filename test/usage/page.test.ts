import fc from 'fast-check';
import { test } from 'tap';
import { requestIdOf } from '../../src/request-id.js';
import type { UsageEntry, UsageNote } from '../../src/usage/entry.js';
import { createRows, pageSpanMs, UsagePage } from '../../src/usage/page.js';
import { readPage } from '../../src/usage/read-page.js';
import { SumCollector } from '../../src/usage/sums.js';
import { anyEntry, noteOf, usageEntry, usageNote } from './entries.js';

const noon = Date.UTC(2026, 2, 9, 12);

/** The text of a page with some calls, of which the first one ended at noon or when it says. */
function textOf(notes: readonly UsageNote[], at = noon): string {
  const page = new UsagePage(at, createRows());
  for (const note of notes) page.add(note);
  return page.end(new SumCollector());
}

test('calls come back from their page as they were', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyEntry, fc.nat(pageSpanMs - 1)), { maxLength: 20 }), (calls) => {
      const entries = calls.map(([entry, after]) => ({ ...entry, at: noon + after }));
      t.strictSame(readPage(textOf(entries.map(noteOf))), entries);
    }),
  );
});

test('ids come back, whether they have numbers of one series, of another one, or none', async (t) => {
  const anyId = fc.oneof(
    fc.record({ requestSeries: fc.constantFrom('a', 'b'), requestNumber: fc.nat(0xffff_ffff) }),
    fc.record({ requestSeries: fc.string(), requestNumber: fc.constant(-1) }),
  );
  fc.assert(
    fc.property(fc.array(anyId, { maxLength: 20 }), (ids) => {
      const text = textOf(ids.map((id) => ({ ...usageNote({ at: noon }), ...id })));
      t.strictSame(
        readPage(text).map(({ requestId }) => requestId),
        ids.map(({ requestSeries, requestNumber }) =>
          requestNumber < 0 ? requestSeries : requestIdOf(requestSeries, requestNumber),
        ),
      );
    }),
  );
});

test('calls of many keys, models and endings in turn come back as they were', async (t) => {
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
  t.strictSame(readPage(textOf(entries.map(noteOf))), entries);
});

test('calls are counted as they were noted', async (t) => {
  const page = new UsagePage(noon, createRows());
  const counted: unknown[] = [];
  const count = () =>
    page.count((facts) => counted.push({ ...facts, usage: facts.usage && { ...facts.usage } }));
  page.add({ ...usageNote({ at: noon, costNanoUsd: 7 }), ownMs: 0.25 });
  count();
  page.add(usageNote({ at: noon, keyId: 'b', tokensKnown: 'none', firstByteMs: null, status: 502 }));
  count();
  count();
  t.match(counted, [
    {
      protocol: 'chat',
      model: 'sim-text',
      key: 'team-a',
      status: 200,
      outcome: 'complete',
      durationMs: 812.5,
      firstByteMs: 120.25,
      ownMs: 0.25,
      requestBytes: 400,
      responseBytes: 900,
      usage: { input: 100, output: 20, cached: 60, reasoning: 5 },
      costNanos: 7,
    },
    { key: 'b', status: 502, ownMs: -1, usage: null },
  ]);
  t.equal(counted.length, 2);
  t.ok((counted[1] as { readonly firstByteMs: number }).firstByteMs < 0);
});

test('a name stands in a page once, and a call takes few bytes', async (t) => {
  const { groups } = usageEntry();
  const notes = Array.from({ length: 200 }, (_, call) => ({
    ...usageNote({
      at: noon + call,
      groups,
      inputTokens: call,
      bytesIn: 1000 + call,
      durationMs: call * 1.234,
    }),
    requestSeries: 'req_0123456789abcdef01',
    requestNumber: 0xffff_0000 + call,
  }));
  const text = textOf(notes);
  t.equal(text.split('team-a').length, 2);
  t.ok(text.length < 200 * 16, `${text.length}`);
});

test('times are kept in whole microseconds', async (t) => {
  const text = textOf([usageNote({ at: noon, durationMs: 1.234_567_8, firstByteMs: 0.000_4 })]);
  t.match(readPage(text), [{ durationMs: 1.235, firstByteMs: 0 }]);
});

test('a page has room for calls of one second, and for so many', async (t) => {
  const page = new UsagePage(noon, createRows());
  t.ok(page.hasRoom(noon));
  t.ok(page.hasRoom(noon + pageSpanMs - 1));
  t.notOk(page.hasRoom(noon + pageSpanMs));
  t.notOk(page.hasRoom(noon - 1), 'a clock that was put back');
  let calls = 0;
  for (; calls < 1000 && page.hasRoom(noon); calls++) page.add(usageNote({ at: noon }));
  t.equal(calls, 500);
  t.equal(readPage(page.end(new SumCollector())).length, calls);
});

test('a page ends with its day, since its calls are added to the sums of one', async (t) => {
  const midnight = Date.UTC(2026, 2, 10);
  const page = new UsagePage(midnight - 10, createRows());
  t.ok(page.hasRoom(midnight - 1));
  t.notOk(page.hasRoom(midnight));
});

test('a page of the first form is read', async (t) => {
  const entries = ['a', 'b'].map((requestId, index) =>
    usageEntry({ at: noon + index, requestId, firstByteMs: index === 0 ? null : 0.5, mediaSeconds: 1.25 }),
  );
  const [first] = entries;
  const { keyId, groups, protocol, model, target, status, outcome, tokensKnown } = first as UsageEntry;
  const manners = [{ keyId, groups, protocol, model, target, status, outcome, tokensKnown }];
  const rows = entries.flatMap((entry) => [
    ...[
      0,
      entry.at - noon,
      entry.inputTokens,
      entry.outputTokens,
      entry.cachedTokens,
      entry.cacheWrittenTokens,
    ],
    ...[entry.reasoningTokens, entry.bytesIn, entry.bytesOut, entry.mediaSeconds, entry.durationMs * 1000],
    ...[entry.firstByteMs === null ? -1 : entry.firstByteMs * 1000, entry.retries, entry.costNanoUsd],
  ]);
  const page = { v: 1, at: noon, manners, ids: ['a', 'b'], rows };
  t.strictSame(readPage(JSON.stringify(page)), entries);
  t.strictSame(readPage(JSON.stringify({ ...page, rows: rows.slice(0, -1) })), entries.slice(0, 1));
  t.strictSame(readPage(JSON.stringify({ ...page, rows: null })), []);
});

test('what is damaged is left out, and what it stands beside is not', async (t) => {
  const text = textOf(['a', 'b', 'c'].map((id) => usageNote({ at: noon, requestId: id, keyId: id })));
  const good = JSON.parse(text) as { manners: unknown[]; ids: unknown[]; columns: string };
  const left = (change: object): string[] =>
    readPage(JSON.stringify({ ...good, ...change })).map(({ requestId }) => requestId);
  t.same(left({}), ['a', 'b', 'c']);
  t.same(left({ later: 1 }), ['a', 'b', 'c'], 'what a later version has added');
  t.same(left({ manners: [good.manners[0], null, good.manners[2]] }), ['a', 'c']);
  t.same(left({ manners: [good.manners[0], 7, { ...(good.manners[2] as object), status: '200' }] }), ['a']);
  t.same(left({ ids: ['a', 7, 'c'] }), ['a', 'c']);
  t.same(left({ ids: ['a'] }), ['a']);
  const columns = Buffer.from(good.columns, 'base64');
  for (const change of [
    { v: 1 },
    { v: 3 },
    { at: 'noon' },
    { at: -1 },
    { manners: {} },
    { ids: null },
    { calls: 2 },
    { calls: 4 },
    { calls: 1e9 },
    { calls: null },
    { columns: 7 },
    { columns: columns.subarray(0, -1).toString('base64') },
  ]) {
    t.same(left(change), [], JSON.stringify(change));
  }
  for (const each of ['', '{', 'null', '1', '[]', text.slice(0, -1)]) t.same(readPage(each), []);
});

test('a number that is none costs the call that has it its line, and no other', async (t) => {
  const numbers = [
    'inputTokens',
    'outputTokens',
    'cachedTokens',
    'cacheWrittenTokens',
    'reasoningTokens',
    'bytesIn',
    'bytesOut',
    'mediaSeconds',
    'durationMs',
    'firstByteMs',
    'retries',
    'costNanoUsd',
  ] as const;
  for (const name of numbers) {
    for (const odd of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const notes = ['a', 'b', 'c'].map((requestId) =>
        usageNote({ at: noon, requestId, ...(requestId === 'b' ? { [name]: odd } : {}) }),
      );
      const left = readPage(textOf(notes)).map(({ requestId }) => requestId);
      t.same(left, ['a', 'c'], `${name} ${odd}`);
    }
  }
});

test('what no page of ours is, is read without harm', async (t) => {
  fc.assert(
    fc.property(
      fc.record({ calls: fc.nat(600), columns: fc.base64String(), ids: fc.array(fc.anything()) }),
      (odd) => {
        const page = { v: 2, at: noon, manners: [{ keyId: 'k' }], series: 's', ...odd };
        t.same(readPage(JSON.stringify(page)), []);
      },
    ),
  );
});
