import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { test } from 'tap';
import { createEmbeddedStore } from '../../src/store/embedded.js';
import { storedLine } from '../../src/store/ledger-format.js';
import type { LedgerLine } from '../../src/store/store.js';
import { BatchMemory } from '../../src/usage/batch-memory.js';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import {
  type CallSource,
  exportUsage,
  readPage,
  readPageSteps,
  reportUsage,
  type UsageExport,
} from '../../src/usage/queries.js';
import { usageLedger } from '../../src/usage/sums.js';
import { OpenBatch, UsageWriter } from '../../src/usage/writer.js';
import { sumTable } from '../suites/ledger-sums.js';
import { addRecord, addUsage, ledgerRecord, recordOfLine, uncounted } from './records.js';

const folder = mkdtempSync(join(tmpdir(), 'usage-'));
const store = createEmbeddedStore({ path: folder });
t.teardown(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Three days, of which each hour has a call of each key and model, and one without either. */
const keys = ['team-a', 'team/b', null];
const models = ['sim-text', `long-${'€'.repeat(100)}`];
const first = Date.UTC(2026, 2, 8);
const records: LedgerRecord[] = [];
for (let hour = 0; hour < 72; hour++) {
  const at = first + hour * 3_600_000;
  for (const keyId of keys) {
    for (const model of models)
      records.push(ledgerRecord({ at, keyId, model, requestId: `${records.length}` }));
  }
  records.push(
    ledgerRecord({ at, keyId: null, model: null, outcome: 'refused', requestId: `${records.length}` }),
  );
}
const yearMs = 365 * 86_400_000;
const writer = new UsageWriter({
  store,
  retention: () => ({ lineMs: Date.now(), sumMs: yearMs }),
  record: uncounted,
  onTaken: () => {},
  onDropped: (count) => {
    throw new Error(`${count} records were dropped`);
  },
  onFailure: (error) => {
    throw error;
  },
});
for (const record of records) addRecord(writer, record);
await writer.close(60_000);

const days = { firstDay: '2026-03-08', lastDay: '2026-03-10' };

test('all usage of a range of days, as one row or in the total', async (t) => {
  const { rows, total, complete } = await reportUsage(store, { ...days, groupBy: [] });
  t.equal(complete, true);
  t.equal(rows.length, 1);
  t.same(rows[0]?.totals, total);
  t.match(total, { calls: 504, refused: 72, inputTokens: 50_400, costNanoUsd: 756_000 });
});

test('the range includes its first and last day, and no other', async (t) => {
  const calls = async (firstDay: string, lastDay: string) =>
    (await reportUsage(store, { firstDay, lastDay, groupBy: [] })).total.calls;
  t.equal(await calls('2026-03-09', '2026-03-09'), 168);
  t.equal(await calls('2026-03-09', '2026-03-31'), 336);
  t.equal(await calls('2026-03-01', '2026-03-07'), 0);
  t.equal(await calls('2026-03-10', '2026-03-09'), 0);
});

test('usage by day, key and model', async (t) => {
  const byDay = await reportUsage(store, { ...days, groupBy: ['day'] });
  t.same(
    byDay.rows.map(({ day, totals }) => [day, totals.calls]),
    [
      ['2026-03-08', 168],
      ['2026-03-09', 168],
      ['2026-03-10', 168],
    ],
  );
  const byKey = await reportUsage(store, { ...days, groupBy: ['key'] });
  t.same(
    byKey.rows.map(({ keyId, totals }) => [keyId, totals.calls]),
    [
      [null, 216],
      ['team-a', 144],
      ['team/b', 144],
    ],
  );
  const byAll = await reportUsage(store, { ...days, groupBy: ['model', 'key', 'day'] });
  t.equal(byAll.rows.length, 21);
  t.match(byAll.rows[0], { day: '2026-03-08', keyId: null, model: null });
});

test('filters take a key, a model, or calls without', async (t) => {
  const calls = async (filter: { keyId?: string | null; model?: string | null }) =>
    (await reportUsage(store, { ...days, groupBy: [], ...filter })).total.calls;
  t.equal(await calls({ keyId: 'team/b' }), 144);
  t.equal(await calls({ keyId: null }), 216);
  t.equal(await calls({ keyId: null, model: null }), 72);
  t.equal(await calls({ keyId: 'team-a', model: models[1] ?? '' }), 72, 'a name too long for an id is found');
  t.equal(await calls({ keyId: 'nobody' }), 0);
});

test('the usage of one key is read from its own sums', async (t) => {
  const read: string[] = [];
  const watched: Pick<typeof store, 'readSums'> = {
    async readSums(...call) {
      const page = await store.readSums(...call);
      read.push(...page.sums.map(({ id }) => id));
      return page;
    },
  };
  const { total } = await reportUsage(watched, { ...days, groupBy: ['day'], keyId: 'team-a' });
  t.equal(total.calls, 144);
  t.equal(read.length, 6);
  const all = { firstDay: '0001-01-01', lastDay: '9999-12-31', groupBy: ['day'] as const };
  t.equal((await reportUsage(store, { ...all, keyId: 'team-a' })).total.calls, 144, 'over any time');
});

test('rows are bounded, and the total is whole', async (t) => {
  const { rows, total, complete } = await reportUsage(store, {
    ...days,
    groupBy: ['key', 'model'],
    mostRows: 2,
  });
  t.equal(complete, false);
  t.equal(rows.length, 2);
  t.equal(total.calls, 504);
});

async function chunks(change: Partial<UsageExport>): Promise<string[]> {
  const all: string[] = [];
  const range = { from: first, until: first + yearMs, format: 'jsonl' } as const;
  for await (const chunk of exportUsage(store, { ...range, ...change })) all.push(chunk);
  return all;
}

test('an export has every record of the range once, in the order of time', async (t) => {
  const parts = await chunks({});
  t.ok(parts.length > 1, 'in parts');
  t.ok(parts.every((part) => part.endsWith('\n')));
  const lines = parts.join('').trimEnd().split('\n');
  t.same(lines.map(recordOfLine), records);
  const some = (await chunks({ from: first + 1, until: first + 3_600_001, keyId: 'team-a' })).join('');
  t.equal(some.trimEnd().split('\n').length, 2);
});

test('an export of what several workers wrote at once is in the order of time', async (t) => {
  const start = Date.UTC(2026, 5, 1);
  const seconds = 100;
  const workers = 3;
  const lines: LedgerLine[] = [];
  for (let second = 0; second < seconds; second++) {
    for (let worker = 0; worker < workers; worker++) {
      const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
      const first = start + second * 1000 + worker * 100;
      for (let call = 0; call < 10; call++) addUsage(batch, { at: first + call * 99 });
      lines.push(...batch.seal().lines.map(storedLine));
    }
  }
  await store.append(usageLedger, {
    writer: 'workers',
    number: 1,
    lines,
    lineTtlMs: Date.now(),
    sums: sumTable(1, []),
  });
  const from = start + 1500;
  const until = start + 90_500;
  const exported = (await chunks({ from, until })).join('').trimEnd().split('\n').map(recordOfLine);
  const times = lines.flatMap(({ value }) => readPage(value).map(({ at }) => at));
  const expected = times.filter((at) => at >= from && at < until).sort((a, b) => a - b);
  t.ok(expected.length > 2600);
  t.same(
    exported.map(({ at }) => at),
    expected,
  );
});

test('a damaged page is passed over', async (t) => {
  const at = Date.UTC(2026, 6, 1);
  const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
  addUsage(batch, { at });
  const [good = ''] = batch.seal().lines.map((line) => storedLine(line).value);
  const values = ['', '{', good, good.slice(1), '{"v":2}', '{"v":1}'];
  const lines = values.map((value) => ({ at, value }));
  await store.append(usageLedger, {
    writer: 'odd',
    number: 1,
    lines,
    lineTtlMs: Date.now(),
    sums: sumTable(1, []),
  });
  const exported = (await chunks({ from: at, until: at + 1 })).join('');
  t.same(exported.trimEnd().split('\n').map(recordOfLine), [ledgerRecord({ at })]);
});

test('an export as a table has a header, and a row for each record', async (t) => {
  const rows = (await chunks({ format: 'csv', model: null })).join('').split('\r\n');
  t.equal(rows.length, 1 + 72 + 1);
  t.match(rows[0], /^at,requestId,keyId,/);
  t.match(rows[1], /^2026-03-08T00:00:00.000Z,6,,,chat,,/);
  t.equal((await chunks({ format: 'csv', from: 0, until: 1 })).length, 1);
  t.same(await chunks({ from: 0, until: 1 }), []);
});

test('no more than some calls of a page are read in one piece', async (t) => {
  const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
  const calls = 500;
  for (let call = 0; call < calls; call++) addUsage(batch, { at: first + call });
  const [line] = batch.seal().lines.map(storedLine);
  const steps = readPageSteps(line?.value ?? '');
  let pieces = 1;
  for (let step = steps.next(); step.done !== true; step = steps.next()) pieces++;
  t.ok(pieces >= calls / 32, `${pieces} pieces`);
  t.equal(readPage(line?.value ?? '').length, calls);
});

test('an export that is left early asks for no more', async (t) => {
  let pages = 0;
  const counting: CallSource = {
    calls: null,
    readLines: (...asked) => {
      pages++;
      return store.readLines(...asked);
    },
  };
  for await (const chunk of exportUsage(counting, { from: 0, until: first + yearMs, format: 'jsonl' })) {
    t.ok(chunk.length > 0);
    break;
  }
  t.equal(pages, 1);
});
