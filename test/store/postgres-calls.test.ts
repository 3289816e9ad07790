import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import { type Test, test } from 'tap';
import type { StoreSettings } from '../../src/config/types.js';
import { createStore } from '../../src/store/create.js';
import { exportStore, importStore } from '../../src/store/move.js';
import { clientConfig } from '../../src/store/postgres-link.js';
import { migrations } from '../../src/store/postgres-schema.js';
import { thisProcess } from '../../src/store/process-mark.js';
import type { CallRows, LedgerBatch, WholeStore } from '../../src/store/store.js';
import { writeRows } from '../../src/usage/call-rows.js';
import { CallTable, tableSpanMs } from '../../src/usage/call-table.js';
import { InterruptedSearch } from '../../src/usage/interrupted.js';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import { openCallsCollection } from '../../src/usage/open-calls.js';
import { writePage } from '../../src/usage/page.js';
import { exportUsage, type UsageFilter } from '../../src/usage/queries.js';
import { requestIdOf, requestSeries } from '../../src/wire/head.js';
import { ledgerBatch } from '../suites/ledger.js';
import { sumTable } from '../suites/ledger-sums.js';
import { postgresSettings, unavailable } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { fc, seed } from '../support/seed.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addRecord, anyRecord, ledgerRecord, recordOfLine, uncounted } from '../usage/records.js';

const skip = skipWithoutPostgres();
const dayMs = 24 * 60 * 60 * 1000;
const now = Date.now();

function open(t: Test, settings: StoreSettings): WholeStore {
  const store = createStore(settings);
  t.teardown(() => store.close());
  return store;
}

/** Calls that have ended within a second, as a table of them. */
function tableOf(records: readonly LedgerRecord[]): CallTable {
  const table = new CallTable();
  table.begin(records[0]?.at ?? now);
  for (const record of records) addRecord(table, record);
  return table;
}

/** Calls at any times, as rows. */
function rowsOf(records: readonly LedgerRecord[]): readonly CallRows[] {
  return records.map((record) => ({ at: record.at, text: writeRows(tableOf([record])) }));
}

function batchOf(records: readonly LedgerRecord[], change: Partial<LedgerBatch> = {}): LedgerBatch {
  const calls = [{ at: records[0]?.at ?? now, text: writeRows(tableOf(records)) }];
  const sums = sumTable(dayMs, [{ id: 'all', add: { calls: records.length } }]);
  return ledgerBatch({ calls, sums, lineTtlMs: 40 * dayMs, ...change });
}

async function stored(store: WholeStore, filter: UsageFilter = {}): Promise<LedgerRecord[]> {
  let lines = '';
  for await (const chunk of exportUsage(store, { from: 0, until: now + dayMs, format: 'jsonl', ...filter }))
    lines += chunk;
  return lines.split('\n').filter(Boolean).map(recordOfLine);
}

async function summed(store: WholeStore): Promise<number | undefined> {
  return (await store.readSums('usage', { from: '', until: null }, 10, null)).sums[0]?.values.calls;
}

test('calls come back from their rows as they were', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, postgresSettings(server.port));
  const records = fc.sample(fc.tuple(anyRecord, fc.nat(tableSpanMs - 1)), { numRuns: 400, seed });
  const calls = records
    .map(([record, after]) => ({ ...record, at: now + after }))
    .sort((a, b) => a.at - b.at);
  // A table begins with the call that ended first, and ends with its day.
  const first = calls[0]?.at ?? now;
  const ofDay = calls.filter(({ at }) => Math.floor(at / dayMs) === Math.floor(first / dayMs));
  t.equal(await store.append('usage', batchOf(ofDay)), true);
  t.strictSame(await stored(store), ofDay);
});

test('lines that the server refuses for what they say are given up, and are no outage', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, postgresSettings(server.port));
  // More than an index takes, and not to be made shorter by what repeats.
  const keyId = randomBytes(6000).toString('base64');
  const refused = store.append('usage', batchOf([ledgerRecord({ at: now, keyId })]));
  await t.rejects(refused, {
    message: 'PostgreSQL does not take the lines of these calls',
    cause: { code: /^54/ },
  });
  t.equal(await store.append('usage', batchOf([ledgerRecord({ at: now })])), true);
  t.equal((await stored(store)).length, 1);
});

test('ids that have numbers, and numbers that no column has, are written all the same', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, postgresSettings(server.port));
  const table = new CallTable();
  table.begin(now);
  const odd = { costNanoUsd: -2.5e9, paidNanoUsd: 1e300, mediaSeconds: Number.NaN, bytesIn: 3e9, retries: 7 };
  addRecord(table, ledgerRecord({ at: now }), { number: 0xabcdef01, ...odd });
  await store.append('usage', batchOf([], { calls: [{ at: now, text: writeRows(table) }] }));
  const [record] = await stored(store);
  t.match(record, {
    requestId: requestIdOf(requestSeries, 0xabcdef01),
    costNanoUsd: -2.5e9,
    paidNanoUsd: 0,
    mediaSeconds: 0,
    bytesIn: 3e9,
    retries: 7,
  });
});

test('a batch of calls counts once, whoever sends it and how often', { skip }, async (t) => {
  const server = await postgresFor(t);
  const stores = [1, 2, 3].map(() => open(t, postgresSettings(server.port)));
  const [store] = stores;
  if (store === undefined) throw new Error('there are three');
  const records = Array.from({ length: 50 }, (_, index) => ledgerRecord({ at: now, requestId: `${index}` }));
  const taken = await Promise.all(stores.map((each) => each.append('usage', batchOf(records))));
  t.strictSame(taken.sort(), [false, false, true]);
  t.equal((await stored(store)).length, 50);
  t.equal(await summed(store), 50);
});

test('a batch of which the calls are not taken leaves nothing, and is taken later', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, postgresSettings(server.port));
  const good = batchOf([ledgerRecord({ at: now })]);
  const broken = { ...good, calls: [{ at: now, text: Buffer.from('no\trow\n') }] };
  await unavailable(t, store.append('usage', broken));
  t.equal(await summed(store), undefined);
  t.equal(await store.append('usage', good), true);
  t.equal((await stored(store)).length, 1);
  t.equal(await summed(store), 1);
});

test('a batch that takes longer than a call may gets more time with each try, and counts once', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  // The tables are made by one that has time for it.
  const patient = open(t, postgresSettings(server.port));
  t.equal(await summed(patient), undefined);
  const store = open(t, { ...postgresSettings(server.port), timeoutMs: 1000 });
  server.query(`CREATE FUNCTION gateway.slow() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM pg_sleep(2.2); RETURN NEW; END'`);
  server.query(
    'CREATE TRIGGER slow BEFORE INSERT ON gateway.ledger_writers FOR EACH ROW EXECUTE FUNCTION gateway.slow()',
  );
  const batch = batchOf([ledgerRecord({ at: now })]);
  await unavailable(t, store.append('usage', batch));
  await unavailable(t, store.append('usage', batch, 1));
  t.equal(await store.append('usage', batch, 3), true);
  t.equal(await store.append('usage', batch, 3), false);
  t.equal((await stored(patient)).length, 1);
  t.equal(await summed(patient), 1);
});

test('calls are read with SQL, by key and by request with an index', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, postgresSettings(server.port));
  const records = Array.from({ length: 400 }, (_, index) =>
    ledgerRecord({ at: now + index, requestId: `${index}`, keyId: index % 40 === 0 ? 'rare' : 'busy' }),
  ).filter(({ at }) => Math.floor(at / dayMs) === Math.floor(now / dayMs));
  await store.append('usage', batchOf(records));
  const rare = records.filter(({ keyId }) => keyId === 'rare');
  t.strictSame(await stored(store, { keyId: 'rare' }), rare);
  t.strictSame(await stored(store, { keyId: null }), []);
  t.strictSame(await stored(store, { keyId: '\0', model: '\u0001\ud800' }), [], 'no row can have these');
  t.equal(
    server.query(
      `SELECT key_id, model, count(*), sum(cost_nano_usd) FROM gateway.calls WHERE key_id = 'rare' GROUP BY 1, 2`,
    ),
    `rare|sim-text|${rare.length}|${rare.length * 1500}`,
  );
  server.query('ANALYZE gateway.calls');
  const plan = (condition: string) =>
    server.query(`SET enable_seqscan = off; EXPLAIN SELECT * FROM gateway.calls WHERE ${condition}`);
  t.match(plan(`key_id = 'rare' AND at > now() - interval '1 hour'`), /key_id_at_place_idx/);
  t.match(plan(`request_id = ANY ('{1,2}')`), /request_id_idx/);
});

test('calls go with the table of their day', { skip }, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, postgresSettings(server.port));
  for (const [index, days] of [5, 3, 0].entries())
    await store.append('usage', batchOf([ledgerRecord({ at: now - days * dayMs })], { number: index + 1 }));
  const parts = () =>
    server.query("SELECT count(*) FROM pg_inherits WHERE inhparent = 'gateway.calls'::regclass");
  t.equal(parts(), '3');
  await store.append('usage', ledgerBatch({ number: 4, lineTtlMs: 4 * dayMs }));
  t.equal((await stored(store)).length, 2);
  await store.sweep();
  t.equal(parts(), '2');
  await store.append('usage', ledgerBatch({ number: 5, lineTtlMs: 40 * dayMs }));
  t.equal((await stored(store)).length, 2, 'what was swept does not come back');
});

/** Makes the tables as an earlier version did. @param count how many migrations it knew */
async function makeEarlierForm(server: PostgresServer, count: number): Promise<void> {
  const client = new Client(clientConfig(postgresSettings(server.port), 5000));
  await client.connect();
  await client.query("CREATE SCHEMA gateway; SET search_path TO gateway; SET timezone TO 'UTC'");
  await client.query(
    'CREATE TABLE migrations (number integer PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())',
  );
  for (const [index, migration] of migrations.slice(0, count).entries()) {
    await client.query(migration);
    await client.query('INSERT INTO migrations (number) VALUES ($1)', [index + 1]);
  }
  await client.end();
}

test('rows of before there were places and video tokens are read among those that have them', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  await makeEarlierForm(server, 6);
  const values = `'${new Date(now).toISOString()}', 'old', 'team-a', '{default}', 'chat', 'm', 'main/m', 200, 'complete', 'exact', 'standard'`;
  const names =
    'at, request_id, key_id, key_groups, protocol, model, target, status, outcome, tokens_known, tier';
  const counts = [
    ...['input_tokens', 'output_tokens', 'cached_tokens', 'cache_written_tokens', 'reasoning_tokens'],
    ...['audio_input_tokens', 'audio_output_tokens', 'image_input_tokens', 'image_output_tokens'],
    ...['cached_audio_tokens', 'cached_image_tokens', 'cache_written_hour_tokens', 'searches', 'bytes_in'],
    ...['bytes_out', 'media_seconds', 'duration_ms', 'retries', 'units', 'cost_nano_usd'],
  ];
  const insert = `SET search_path TO gateway; SELECT make_day_of('calls', date_trunc('day', '${new Date(now).toISOString()}'::timestamptz at time zone 'UTC') at time zone 'UTC'); INSERT INTO calls (${names}, ${counts.join()}) VALUES (${values}, ${counts.map((_, index) => index).join()})`;
  server.query(insert);
  const store = open(t, postgresSettings(server.port));
  const record = ledgerRecord({
    at: now + 1,
    requestId: 'new',
    geo: 'us',
    videoInputTokens: 7,
    characters: 8,
  });
  await store.append('usage', batchOf([record]));
  t.equal(server.query('SELECT count(*) FROM gateway.migrations'), `${migrations.length}`);
  const [old, added] = await stored(store);
  t.match(old, { requestId: 'old', outputTokens: 1, videoInputTokens: 0, geo: null, characters: 0 });
  t.strictSame(added, record);
  // A host of the version before continues on its connections.
  server.query(insert.replace("'old'", "'later'"));
  t.strictSame((await stored(store)).map(({ requestId }) => requestId).sort(), ['later', 'new', 'old']);
});

test('calls are written while an update of the tables waits for a long reader', { skip }, async (t) => {
  const server = await postgresFor(t);
  await makeEarlierForm(server, 6);
  const day = `'${new Date(now).toISOString().slice(0, 10)}T00:00:00Z'`;
  server.query(`SET search_path TO gateway; SELECT make_day_of('calls', ${day})`);
  const reader = new Client(clientConfig(postgresSettings(server.port), 5000));
  await reader.connect();
  await reader.query('BEGIN');
  await reader.query('SELECT count(*) FROM gateway.calls');
  const store = open(t, postgresSettings(server.port));
  const appended = store.append('usage', batchOf([ledgerRecord({ at: now, geo: 'us' })]));
  const waiting = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted";
  await eventually(() => server.query(waiting), { fits: (count) => count !== '0', everyMs: 10 });
  // It would wait for the reader, which reads until it is told to stop.
  server.query('INSERT INTO gateway.calls SELECT * FROM gateway.calls');
  await reader.query('COMMIT');
  await reader.end();
  await appended;
  t.match(await stored(store), [{ geo: 'us' }]);
});

test('pages of the version before are read among rows, in the order of time', { skip }, async (t) => {
  const server = await postgresFor(t);
  await makeEarlierForm(server, 1);
  const store = open(t, postgresSettings(server.port));
  const records = Array.from({ length: 900 }, (_, index) =>
    ledgerRecord({ at: now - dayMs + index * 40_000, requestId: `${index}`, keyId: `key-${index % 3}` }),
  );
  const isPacked = (index: number): boolean => index < 300 || (index < 600 && index % 2 === 0);
  const packed = records.filter((_, index) => isPacked(index));
  const lines = packed.map((record) => ({ at: record.at, value: writePage(tableOf([record])) }));
  const calls = rowsOf(records.filter((_, index) => !isPacked(index)));
  await store.append('usage', ledgerBatch({ lines, calls, lineTtlMs: 40 * dayMs }));
  t.equal(server.query('SELECT count(*) FROM gateway.migrations'), `${migrations.length}`);
  t.equal(server.query('SELECT count(*) FROM gateway.ledger_lines'), '450');
  t.strictSame(await stored(store), records);
  t.strictSame(
    await stored(store, { keyId: 'key-1' }),
    records.filter(({ keyId }) => keyId === 'key-1'),
  );
});

test('interrupted calls are found by their requests, and have a row if they have none', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const store = open(t, postgresSettings(server.port));
  const records = ['told', 'tried', 'untold'].map((requestId) =>
    ledgerRecord({ at: now, requestId, outcome: 'interrupted' }),
  );
  const page = writePage(tableOf(records));
  const value = JSON.stringify({ writer: thisProcess(), at: now, since: now, page });
  await store.create(openCallsCollection, 'req_1/1', value, dayMs);
  const told = [
    ledgerRecord({ at: now, requestId: 'told' }),
    ledgerRecord({ at: now, requestId: 'tried', outcome: 'attempt' }),
  ];
  await store.append('usage', batchOf(told));
  const search = new InterruptedSearch({
    store,
    hasEnded: () => true,
    silentMs: 1,
    lastWritesMs: 0,
    retention: () => ({ lineMs: 40 * dayMs, sumMs: 40 * dayMs }),
    record: uncounted,
  });
  t.match(await search.round(), [{ calls: 2 }]);
  t.strictSame(
    (await stored(store)).map(({ requestId, outcome }) => `${requestId} ${outcome}`),
    ['told complete', 'tried attempt', 'tried interrupted', 'untold interrupted'],
  );
  t.match(await search.round(), []);
});

async function exported(source: StoreSettings): Promise<string> {
  const output = new PassThrough();
  const read = text(output);
  await exportStore(source, output);
  output.end();
  return read;
}

test('rows move to an embedded store and to another database', { skip }, async (t) => {
  const server = await postgresFor(t);
  const settings = postgresSettings(server.port);
  const store = open(t, settings);
  const records = Array.from({ length: 1200 }, (_, index) =>
    ledgerRecord({
      at: now - dayMs + index * 400,
      requestId: `${index} "\t\n`,
      geo: index % 3 === 0 ? null : 'us\t',
      videoInputTokens: index,
      characters: index + 1,
    }),
  );
  for (const [writer, rest] of [
    ['one', 0],
    ['other', 1],
  ] as const) {
    const calls = rowsOf(records.filter((_, index) => index % 2 === rest));
    await store.append('usage', ledgerBatch({ writer, calls, lineTtlMs: 40 * dayMs }));
  }
  const places: readonly StoreSettings[] = [
    { kind: 'embedded', path: join(temporaryFolder(t), 'store'), taskDays: 7 },
    { ...settings, schema: 'other' },
  ];
  const dump = await exported(settings);
  for (const place of places) {
    await importStore(place, Readable.from([dump]));
    t.strictSame(await stored(open(t, place)), records);
  }
  // As the version before exported it.
  const older = dump
    .split('\n')
    .map((line) =>
      line.replace(/"(video_input_tokens|geo|characters)":("[^"]*"|null|\d+),?/g, '').replaceAll(',}', '}'),
    )
    .join('\n');
  t.notMatch(older, /video_input_tokens|geo|characters/);
  const withoutThem = records.map((record) => ({ ...record, geo: null, videoInputTokens: 0, characters: 0 }));
  for (const place of [
    { kind: 'embedded', path: join(temporaryFolder(t), 'older'), taskDays: 7 },
    { ...settings, schema: 'older' },
  ] as const) {
    await importStore(place, Readable.from([older]));
    t.strictSame(await stored(open(t, place)), withoutThem);
  }
});
