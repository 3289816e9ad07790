import { test } from 'tap';
import { unknownCost } from '../../src/metrics/call-record.js';
import { CallTable, tableSpanMs, thirdColumns } from '../../src/usage/call-table.js';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import { packColumns, unpackColumns, writePage } from '../../src/usage/page.js';
import { readPage } from '../../src/usage/queries.js';
import { requestIdOf, requestSeries } from '../../src/wire/head.js';
import { fc } from '../support/seed.js';
import { addRecord, anyRecord, ledgerRecord } from './records.js';

const noon = Date.UTC(2026, 2, 9, 12);

/** The text of a page with some calls, of which the first one ended at noon. */
function textOf(records: readonly LedgerRecord[]): string {
  const table = new CallTable();
  table.begin(noon);
  for (const record of records) addRecord(table, record);
  return writePage(table);
}

test('calls come back from their page as they were', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyRecord, fc.nat(tableSpanMs - 1)), { maxLength: 20 }), (calls) => {
      const records = calls.map(([record, after]) => ({ ...record, at: noon + after }));
      t.strictSame(readPage(textOf(records)), records);
    }),
  );
});

test('ids come back, whether they have numbers or not', async (t) => {
  const anyId = fc.oneof(fc.nat(0xffff_ffff), fc.string());
  fc.assert(
    fc.property(fc.array(anyId, { maxLength: 20 }), (ids) => {
      const table = new CallTable();
      table.begin(noon);
      for (const id of ids) addId(table, id);
      t.strictSame(
        readPage(writePage(table)).map(({ requestId }) => requestId),
        ids.map((id) => (typeof id === 'string' ? id : requestIdOf(requestSeries, id))),
      );
    }),
  );
});

/** Adds a call with an id, or with the number of one. */
function addId(table: CallTable, id: number | string): void {
  const number = typeof id === 'string' ? -1 : id;
  addRecord(table, ledgerRecord({ at: noon }), { id: `${id}`, number, bytesIn: 1, bytesOut: 1 });
}

test('calls of many keys, models and endings in turn come back as they were', async (t) => {
  const records = Array.from({ length: 200 }, (_, index) =>
    ledgerRecord({
      at: noon,
      requestId: `${index}`,
      keyId: index % 3 === 0 ? null : `key-${index % 7}`,
      model: `model-${index % 5}`,
      status: index % 2 === 0 ? 200 : 500,
      outcome: index % 4 === 0 ? 'refused' : 'complete',
      firstByteMs: index % 2 === 0 ? 0 : null,
    }),
  );
  t.strictSame(readPage(textOf(records)), records);
});

test('a name stands in a page once, and a call takes few bytes', async (t) => {
  const table = new CallTable();
  table.begin(noon);
  for (let call = 0; call < 200; call++) {
    const record = ledgerRecord({ at: noon + call, inputTokens: call, durationMs: call * 1.234 });
    addRecord(table, record, { id: '', number: 0xffff_0000 + call, bytesIn: 1000 + call, bytesOut: 900 });
  }
  const text = writePage(table);
  t.equal(text.split('team-a').length, 2);
  t.ok(text.length < 200 * 16, `${text.length}`);
});

test('times are kept in whole microseconds', async (t) => {
  const text = textOf([ledgerRecord({ at: noon, durationMs: 1.234_567_8, firstByteMs: 0.000_4 })]);
  t.match(readPage(text), [{ durationMs: 1.235, firstByteMs: 0 }]);
});

test('a page of the first form is read', async (t) => {
  const records = ['a', 'b'].map((requestId, index) =>
    ledgerRecord({
      at: noon + index,
      requestId,
      firstByteMs: index === 0 ? null : 0.5,
      mediaSeconds: 1.25,
      units: 0,
    }),
  );
  const [first] = records;
  const { keyId, groups, protocol, model, target, status, outcome, tokensKnown } = first as LedgerRecord;
  const manners = [{ keyId, groups, protocol, model, target, status, outcome, tokensKnown }];
  const rows = records.flatMap((record) => [
    ...[
      0,
      record.at - noon,
      record.inputTokens,
      record.outputTokens,
      record.cachedTokens,
      record.cacheWrittenTokens,
    ],
    ...[
      record.reasoningTokens,
      record.bytesIn,
      record.bytesOut,
      record.mediaSeconds,
      record.durationMs * 1000,
    ],
    ...[record.firstByteMs === null ? -1 : record.firstByteMs * 1000, record.retries, record.costNanoUsd],
  ]);
  const page = { v: 1, at: noon, manners, ids: ['a', 'b'], rows };
  t.strictSame(readPage(JSON.stringify(page)), records);
  t.strictSame(readPage(JSON.stringify({ ...page, rows: rows.slice(0, -1) })), records.slice(0, 1));
  t.strictSame(readPage(JSON.stringify({ ...page, rows: null })), []);
});

test('a page of the second form is read, which has fewer columns', async (t) => {
  const old = 15;
  const records = ['a', 'b'].map((requestId, index) =>
    ledgerRecord({ at: noon + index, requestId, costNanoUsd: 7 + index, units: 0 }),
  );
  const page = JSON.parse(textOf(records)) as { calls: number; columns: string };
  const rows = unpackColumns(Buffer.from(page.columns, 'base64'), thirdColumns, page.calls);
  if (rows === null) throw new Error('the page is not read');
  const columns = packColumns(rows, thirdColumns, old, page.calls).toString('base64');
  t.strictSame(readPage(JSON.stringify({ ...page, v: 2, columns })), records);
  t.strictSame(readPage(JSON.stringify({ ...page, v: 2 })), [], 'of another form than it says');
});

test('a page without video tokens and places is of the third form, which knew neither, and is read', async (t) => {
  const group = {
    keyId: 'team-a',
    groups: ['default'],
    protocol: 'chat',
    model: 'sim-text',
    target: 'main/gpt',
    status: 200,
    outcome: 'complete',
    tokensKnown: 'exact',
  };
  // As that version wrote it.
  const page = {
    v: 3,
    at: noon,
    manners: [group, { ...group, keyId: 'team-b', tokensKnown: 'partial' }],
    series: null,
    ids: ['a', 'b'],
    calls: 2,
    columns: [
      'AQAAAAAAAAAAAAEBAAAAAAAAAAAABwEAAAAAAAAAwAEAAAAAAAAAAFlAAAAAAAAAADRAAAAAAAAAAE5AAQAAAAAAAAAAAAUA',
      'AAAAAAAAFEAAAAAAAAAAeUAAAAAAAAAgjEAAAAAAAAAAAAAAAAAAAKjLKEEAAAAAAKBb/UAAAAAAAAAAAAAAAAAAAABwl0AA',
      'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAAEAAEAAAAAAAAAAAAFAQAAAAAA',
      'AAAAAgABAAAAAAAA8D8CAAgAAAAAAAAAAAAAAAAAIIxA////////7/8BAAAAAAAAAAACAA==',
    ].join(''),
  };
  const records = [
    ledgerRecord({
      at: noon,
      requestId: 'a',
      searches: 2,
      tier: 'priority',
      units: 3,
      paidNanoUsd: 900,
      cachedImageTokens: 4,
    }),
    ledgerRecord({
      at: noon + 7,
      requestId: 'b',
      keyId: 'team-b',
      tokensKnown: 'partial',
      cacheWrittenTokens: 5,
      cacheWrittenHourTokens: 5,
    }),
  ];
  t.strictSame(readPage(JSON.stringify(page)), records);
  t.equal(textOf(records), JSON.stringify(page), 'so that a gateway of that version reads it');
  for (const change of [{ geo: 'us' }, { videoInputTokens: 3 }]) {
    const changed = records.map((record, index) => (index === 1 ? { ...record, ...change } : record));
    const text = textOf(changed);
    t.match(JSON.parse(text), { v: 5 });
    t.strictSame(readPage(text), changed);
  }
  for (const v of [5, 6])
    t.strictSame(readPage(JSON.stringify({ ...page, v })), [], 'of another form than it says');
});

test('a page without characters is of the fifth form, which did not know them, and is read', async (t) => {
  const group = {
    ...{ keyId: 'team-a', groups: ['default'], protocol: 'chat', model: 'sim-text', target: 'main/gpt' },
    ...{ status: 200, outcome: 'complete', tokensKnown: 'exact', geo: 'us' },
  };
  const record = ledgerRecord({ at: noon, requestId: 'a', geo: 'us', videoInputTokens: 3 });
  const rows = Float64Array.of(
    ...[0, 0, -1, 100, 20, 60, 0, 5, 400, 900, 0, 812_500, 120_250, 0, 1500],
    ...[0, 0, 0, 0, 0, 0, 0, 0, 1, unknownCost, 0, 3],
  );
  const columns = packColumns(rows, rows.length, rows.length, 1).toString('base64');
  // As that version wrote it.
  const page = { v: 5, at: noon, manners: [group], series: null, ids: ['a'], calls: 1, columns };
  t.strictSame(readPage(JSON.stringify(page)), [record]);
  t.equal(textOf([record]), JSON.stringify(page), 'so that a gateway of that version reads it');
  const spoken = { ...record, characters: 12 };
  const text = textOf([spoken]);
  t.match(JSON.parse(text), { v: 6 });
  t.strictSame(readPage(text), [spoken]);
});

test('what is damaged is left out, and what it stands beside is not', async (t) => {
  const text = textOf(['a', 'b', 'c'].map((id) => ledgerRecord({ at: noon, requestId: id, keyId: id })));
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
    { v: 4 },
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
    'retries',
    'costNanoUsd',
  ] as const;
  for (const name of numbers) {
    for (const odd of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const some = ['a', 'b', 'c'].map((requestId) =>
        ledgerRecord({ at: noon, requestId, ...(requestId === 'b' ? { [name]: odd } : {}) }),
      );
      const left = readPage(textOf(some)).map(({ requestId }) => requestId);
      t.same(left, ['a', 'c'], `${name} ${odd}`);
    }
  }
});

test('what no page of ours is, is read without harm', async (t) => {
  fc.assert(
    fc.property(
      fc.record({ calls: fc.nat(1100), columns: fc.base64String(), ids: fc.array(fc.anything()) }),
      (odd) => {
        const page = { v: 2, at: noon, manners: [{ keyId: 'k' }], series: 's', ...odd };
        t.same(readPage(JSON.stringify(page)), []);
      },
    ),
  );
});
