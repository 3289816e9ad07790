import { serviceTiers } from '../conversation/usage.js';
import { none, unknownCost } from '../metrics/call-record.js';
import { readCallLine } from '../store/ledger-format.js';
import type { Ledger, LedgerLine, StoredCalls, SumPage } from '../store/store.js';
import { requestIdOf } from '../wire/head.js';
import { type JsonObject, parseObject } from '../wire/json.js';
import { atOnce, inSlices, type Steps, sortSteps, textInSlices } from '../wire/steps.js';
import { dayMs, dayOf } from './budget.js';
import { readRow } from './call-rows.js';
import {
  type CallGroup,
  column,
  fifthColumns,
  keptColumns,
  mostCalls,
  oldColumns,
  tableSpanMs,
  thirdColumns,
} from './call-table.js';
import { csvHeader, csvRecord } from './csv.js';
import {
  isLedgerRecord,
  isTime,
  type LedgerRecord,
  type LedgerRecordLike,
  newerFields,
  writeRecord,
} from './ledger-record.js';
import { fifthVersion, thirdVersion, unpackColumns, version } from './page.js';
import {
  addTotals,
  labelOf,
  noTotals,
  readSumId,
  type SumLabels,
  sumRange,
  type UsageTotals,
  usageLedger,
} from './sums.js';

/** The dimensions by which usage can be grouped. */
export type UsageGrouping = 'day' | 'key' | 'model';

/** Which calls count. Null for a key or a model selects calls without one; an absent property selects all. */
export interface UsageFilter {
  readonly keyId?: string | null;
  readonly model?: string | null;
}

export interface UsageQuery extends UsageFilter {
  /** First and last day in UTC, both included, as `2026-03-09`. */
  readonly firstDay: string;
  readonly lastDay: string;
  readonly groupBy: readonly UsageGrouping[];
  /** Most rows of the report; default 10,000. */
  readonly mostRows?: number;
}

/** A row has a label for each requested grouping. */
export interface UsageRow {
  readonly day?: string;
  readonly keyId?: string | null;
  readonly model?: string | null;
  readonly totals: UsageTotals;
}

export interface UsageReport {
  /** Sorted by day, key and model. */
  readonly rows: readonly UsageRow[];
  /** Totals of all calls that count. */
  readonly total: UsageTotals;
  /** False when there were more groups than rows; the missing ones are only in the total. */
  readonly complete: boolean;
}

const defaultMostRows = 10_000;
/** Sums of a page, and first pages read concurrently; that many pages of sums are in memory. */
const sumsOfPage = 500;
const firstPagesAtOnce = 32;
/** Most days that are read one by one for a single key: three years. */
const maxKeyDays = 1100;
/** Ledger lines read at a time, each with a page of calls. */
const linesOfPage = 12;
/** Calls read at a time from a store that keeps them as rows. */
const rowsOfPage = 250;
/** Most records held back for earlier ones on other pages. */
const maxHeldRecords = 40_000;

/**
 * Reports usage from the ledger's sums. Memory is bounded by the rows, not by the range. For one key, only its own sums
 * of each day are read, however many keys there are.
 * @throws {GatewayError} when the store is unavailable
 */
export async function reportUsage(store: Pick<Ledger, 'readSums'>, query: UsageQuery): Promise<UsageReport> {
  const mostRows = query.mostRows ?? defaultMostRows;
  const by = new Set(query.groupBy);
  const filter: UsageFilter = {
    ...(query.keyId === undefined ? {} : { keyId: labelOf(query.keyId) }),
    ...(query.model === undefined ? {} : { model: labelOf(query.model) }),
  };
  const groups = new Map<string, UsageRow>();
  const total = noTotals();
  let complete = true;
  function* add(sums: SumPage['sums']): Steps<void> {
    for (const { id, values } of sums) {
      yield;
      const labels = readSumId(id);
      if (labels === null || !counts(filter, labels)) continue;
      addTotals(total, values);
      const group = JSON.stringify([
        by.has('day') ? labels.day : null,
        by.has('key') ? labels.keyId : null,
        by.has('model') ? labels.model : null,
      ]);
      let row = groups.get(group);
      if (row === undefined) {
        if (groups.size >= mostRows) {
          complete = false;
          continue;
        }
        row = { ...shown(by, labels), totals: noTotals() };
        groups.set(group, row);
      }
      addTotals(row.totals, values);
    }
  }
  for await (const sums of readSums(store, rangesOf(query))) await inSlices(add(sums));
  return { rows: await inSlices(sortSteps([...groups.values()], compareRows)), total, complete };
}

type SumRange = ReturnType<typeof sumRange>;

/** The ranges of ids that contain every sum of a query, in the order of days. */
function rangesOf({ firstDay, lastDay, keyId }: UsageQuery): readonly SumRange[] {
  // In an id a slash follows the day, and '0' is the next character after the slash.
  const whole = { from: firstDay, until: `${lastDay}0` };
  if (keyId === undefined) return [whole];
  const [first, last] = [Date.parse(firstDay), Date.parse(lastDay)];
  const days = Math.floor((last - first) / dayMs) + 1;
  if (!(days <= maxKeyDays)) return [whole];
  return Array.from({ length: Math.max(0, days) }, (_, day) => sumRange(dayOf(first + day * dayMs), keyId));
}

/** Reads the sums of ranges, page by page. */
async function* readSums(
  store: Pick<Ledger, 'readSums'>,
  ranges: readonly SumRange[],
): AsyncGenerator<SumPage['sums'], void, undefined> {
  for (let at = 0; at < ranges.length; at += firstPagesAtOnce) {
    const some = ranges.slice(at, at + firstPagesAtOnce);
    const read = (range: SumRange, from: string | null): Promise<SumPage> =>
      store.readSums(usageLedger, range, sumsOfPage, from);
    const firstPages = await Promise.all(some.map((range) => read(range, null)));
    for (const [index, range] of some.entries()) {
      let page = firstPages[index] ?? { sums: [], next: null };
      yield page.sums;
      while (page.next !== null) {
        page = await read(range, page.next);
        yield page.sums;
      }
    }
  }
}

function counts(filter: UsageFilter, { keyId, model }: Omit<SumLabels, 'day'>): boolean {
  if (filter.keyId !== undefined && filter.keyId !== keyId) return false;
  return filter.model === undefined || filter.model === model;
}

function shown(by: ReadonlySet<UsageGrouping>, { day, keyId, model }: SumLabels): Omit<UsageRow, 'totals'> {
  return {
    ...(by.has('day') ? { day } : {}),
    ...(by.has('key') ? { keyId } : {}),
    ...(by.has('model') ? { model } : {}),
  };
}

function compareRows(a: UsageRow, b: UsageRow): number {
  return compare(a.day, b.day) || compare(a.keyId, b.keyId) || compare(a.model, b.model);
}

/** Compares by code units; null comes first. */
function compare(a: string | null = null, b: string | null = null): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? -1 : 1;
  return a < b ? -1 : 1;
}

export interface UsageExport extends UsageFilter {
  /** Unix milliseconds; `until` is excluded. */
  readonly from: number;
  readonly until: number;
  readonly format: 'jsonl' | 'csv';
}

/** The source of calls: packed lines, and rows if the store has them. */
export type CallSource = Pick<Ledger, 'readLines' | 'calls'>;

/**
 * Exports the records of a range in the order of their times, as chunks of text of whole lines. CSV has its header row
 * even without records. Nothing is read before it is requested; memory is bounded.
 * @throws {GatewayError} when the store is unavailable, between two chunks
 */
export async function* exportUsage(
  store: CallSource,
  { from, until, format, ...filter }: UsageExport,
): AsyncGenerator<string, void, undefined> {
  if (format === 'csv') yield csvHeader();
  for await (const records of readRecords(store, { from, until, ...filter })) {
    for await (const chunk of textInSlices(textsOf(records, format))) if (chunk !== '') yield chunk;
  }
}

function* textsOf(records: readonly LedgerRecord[], format: UsageExport['format']): Generator<string> {
  for (const record of records) yield format === 'csv' ? csvRecord(record) : `${writeRecord(record)}\n`;
}

type RecordRange = Omit<UsageExport, 'format'>;
/** Records in order, from one array to the next. */
type OrderedRecords = AsyncGenerator<LedgerRecord[], void, undefined>;

function readRecords(store: CallSource, asked: RecordRange): OrderedRecords {
  const packed = readPacked(store, asked);
  return store.calls === null ? packed : inOrder(packed, readRows(store.calls, asked));
}

/** Merges two ordered sequences. */
async function* inOrder(first: OrderedRecords, second: OrderedRecords): OrderedRecords {
  let [left, right] = [await nextRecords(first), await nextRecords(second)];
  while (left.length > 0 && right.length > 0) {
    const until = Math.min(left.at(-1)?.at ?? 0, right.at(-1)?.at ?? 0);
    const [ofLeft, ofRight] = [left, right].map((records) => {
      const later = records.findIndex(({ at }) => at > until);
      return later < 0 ? records.length : later;
    });
    yield [...left.slice(0, ofLeft), ...right.slice(0, ofRight)].sort((a, b) => a.at - b.at);
    left = left.slice(ofLeft);
    right = right.slice(ofRight);
    if (left.length === 0) left = await nextRecords(first);
    if (right.length === 0) right = await nextRecords(second);
  }
  if (left.length > 0) yield left;
  if (right.length > 0) yield right;
  yield* first;
  yield* second;
}

/** @returns the next records; an empty array only at the end */
async function nextRecords(of: OrderedRecords): Promise<LedgerRecord[]> {
  for (;;) {
    const { done, value } = await of.next();
    if (done === true || value === undefined) return [];
    if (value.length > 0) return value;
  }
}

async function* readRows(calls: StoredCalls, { from, until, keyId, model }: RecordRange): OrderedRecords {
  let next: string | null = null;
  do {
    const page = await calls.read({ range: { from, until }, keyId, model }, rowsOfPage, next);
    next = page.next;
    yield page.calls.map(readRow).filter((record) => record !== null);
  } while (next !== null);
}

async function* readPacked(
  store: Pick<Ledger, 'readLines'>,
  { from, until, ...filter }: RecordRange,
): OrderedRecords {
  // A page that begins before the range may have calls within it.
  const range = { from: Math.max(0, from - tableSpanMs), until };
  /** Records read, but held back: a page not yet read may have calls that ended earlier. */
  let held: LedgerRecord[] = [];
  let next: string | null = null;
  function* addTo(before: readonly LedgerRecord[], lines: readonly LedgerLine[]): Steps<LedgerRecord[]> {
    const all = [...before];
    for (const { value } of lines) {
      yield;
      for (const record of yield* readPageSteps(value))
        if (record.at >= from && record.at < until && counts(filter, record)) all.push(record);
    }
    return yield* sortSteps(all, (a, b) => a.at - b.at);
  }
  do {
    const page = await store.readLines(usageLedger, range, linesOfPage, next);
    next = page.next;
    held = await inSlices(addTo(held, page.lines));
    const ready = next === null ? held.length : readyOf(held, page.lines.at(-1)?.at ?? 0);
    yield held.slice(0, ready);
    held = held.slice(ready);
  } while (next !== null);
}

/**
 * The number of ordered records that can be returned when all further pages of the ledger begin at `at` or later. Each
 * worker writes its pages in sequence, so few records are held back unless clocks are wrong.
 */
function readyOf(records: readonly LedgerRecord[], at: number): number {
  const later = records.findIndex((record) => record.at > at);
  return later < 0 || records.length - later > maxHeldRecords ? records.length : later;
}

/** Most calls of a page that is read: pages of later versions may hold more than this version writes. */
const maxCallsRead = 20 * mostCalls;

/** Reads the calls of a page in the order in which they were added. Damaged calls, or a damaged page, are left out. */
export function readPage(text: string): LedgerRecord[] {
  return atOnce(readPageSteps(text));
}

/** Calls of a page read in one step. */
const callsPerStep = 32;

export function* readPageSteps(text: string): Steps<LedgerRecord[]> {
  const json = parseObject(text);
  const stored = readCallLine(json);
  if (stored !== null) return stored.map(readRow).filter((record) => record !== null);
  const page = parse(json);
  if (page === null) return [];
  const records: LedgerRecord[] = [];
  for (let start = 0; start < page.rows.length; start += keptColumns) {
    const record = readCall(page, page.rows.subarray(start, start + keptColumns));
    if (isLedgerRecord(record)) records.push(record);
    if (start % (callsPerStep * keptColumns) === 0) yield;
  }
  return records;
}

/** A parsed page, checked only in outline. */
interface ParsedPage {
  readonly at: number;
  readonly callGroups: readonly ({ readonly [Name in keyof CallGroup]?: unknown } | null)[];
  readonly series: unknown;
  readonly ids: readonly unknown[];
  readonly rows: Float64Array;
}

function parse(page: JsonObject | null): ParsedPage | null {
  if (page === null) return null;
  const { v, at, manners: callGroups, series, ids, ...numbers } = page;
  if (!isTime(at) || !Array.isArray(callGroups) || !Array.isArray(ids)) return null;
  const rows = rowsOf(v, numbers, ids.length);
  return rows === null ? null : { at, callGroups, series, ids, rows };
}

function rowsOf(
  form: unknown,
  numbers: Readonly<Record<string, unknown>>,
  calls: number,
): Float64Array | null {
  switch (form) {
    case version:
      return packedRows(numbers, keptColumns);
    case fifthVersion:
      return extended(packedRows(numbers, fifthColumns), fifthColumns);
    case thirdVersion:
      return extended(packedRows(numbers, thirdColumns), thirdColumns);
    case 2:
      return extended(packedRows(numbers, oldColumns), oldColumns);
    case 1:
      return extended(plainRows(numbers, calls), oldColumns);
    default:
      return null;
  }
}

function packedRows(
  { calls, columns }: Readonly<Record<string, unknown>>,
  count: number,
): Float64Array | null {
  if (typeof columns !== 'string' || !isCount(calls)) return null;
  return unpackColumns(Buffer.from(columns, 'base64'), count, calls);
}

/** Extends rows of an older form by the columns that it lacks: unknown costs, and zeros for the rest. */
function extended(rows: Float64Array | null, columns: number): Float64Array | null {
  if (rows === null) return null;
  const calls = rows.length / columns;
  const all = new Float64Array(calls * keptColumns);
  for (let call = 0; call < calls; call++) {
    const start = call * keptColumns;
    all.set(rows.subarray(call * columns, (call + 1) * columns), start);
    if (columns <= column.paidNanoUsd) all[start + column.paidNanoUsd] = unknownCost;
  }
  return all;
}

/** Rows of the first form: numbers as JSON, without a column for the id, since each call had its id in `ids`. */
function plainRows({ rows }: Readonly<Record<string, unknown>>, calls: number): Float64Array | null {
  if (!Array.isArray(rows) || calls > maxCallsRead) return null;
  const all = new Float64Array(calls * oldColumns);
  for (let call = 0; call < calls; call++) {
    const row: unknown[] = rows.slice(call * (oldColumns - 1), (call + 1) * (oldColumns - 1));
    row.splice(2, 0, -call - 1);
    for (let index = 0; index < oldColumns; index++) {
      const value = row[index];
      all[call * oldColumns + index] = typeof value === 'number' ? value : Number.NaN;
    }
  }
  return all;
}

function isCount(calls: unknown): calls is number {
  return Number.isInteger(calls) && (calls as number) >= 0 && (calls as number) <= maxCallsRead;
}

/** The fields of a record in the order of `recordFields`. */
function readCall(page: ParsedPage, row: Float64Array): LedgerRecordLike {
  const group = page.callGroups[row[column.group] ?? none] ?? null;
  const firstByte = row[column.firstByte];
  const paid = row[column.paidNanoUsd];
  return {
    at: page.at + (row[column.since] ?? Number.NaN),
    requestId: idOf(page, row[column.id] ?? none),
    keyId: group?.keyId,
    groups: group?.groups,
    protocol: group?.protocol,
    model: group?.model,
    target: group?.target,
    status: group?.status,
    outcome: group?.outcome,
    inputTokens: row[column.inputTokens],
    outputTokens: row[column.outputTokens],
    cachedTokens: row[column.cachedTokens],
    cacheWrittenTokens: row[column.cacheWrittenTokens],
    reasoningTokens: row[column.reasoningTokens],
    audioInputTokens: row[column.audioInputTokens],
    audioOutputTokens: row[column.audioOutputTokens],
    imageInputTokens: row[column.imageInputTokens],
    imageOutputTokens: row[column.imageOutputTokens],
    cachedAudioTokens: row[column.cachedAudioTokens],
    cachedImageTokens: row[column.cachedImageTokens],
    cacheWrittenHourTokens: row[column.cacheWrittenHourTokens],
    searches: row[column.searches],
    tier: serviceTiers[row[column.tier] ?? none],
    tokensKnown: group?.tokensKnown,
    bytesIn: row[column.bytesIn],
    bytesOut: row[column.bytesOut],
    mediaSeconds: row[column.mediaSeconds],
    durationMs: milliseconds(row[column.duration]),
    firstByteMs: firstByte === none ? null : milliseconds(firstByte),
    retries: row[column.retries],
    units: row[column.units],
    costNanoUsd: row[column.costNanoUsd],
    paidNanoUsd: paid === unknownCost ? null : paid,
    videoInputTokens: row[column.videoInputTokens],
    geo: group?.geo ?? newerFields.geo,
    characters: row[column.characters],
  };
}

function idOf({ series, ids }: ParsedPage, number: number): unknown {
  if (number < 0) return ids[-number - 1];
  return typeof series === 'string' ? requestIdOf(series, number) : null;
}

function milliseconds(microseconds: number | undefined): number {
  return (microseconds ?? Number.NaN) / 1000;
}
