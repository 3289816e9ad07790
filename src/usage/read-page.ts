import { none } from '../metrics/call-record.js';
import { requestIdOf } from '../wire/request-id.js';
import { keptColumns, mostCalls } from './call-table.js';
import { unpackColumns } from './columns.js';
import { isLedgerRecord, isTime, type LedgerRecord, type LedgerRecordLike } from './ledger-record.js';
import { version } from './page.js';
import type { CallGroup } from './sums.js';

/** Calls of a page that is read: those to come may hold more than ours do. */
const mostRead = 10 * mostCalls;

/** The calls of a page in the order in which they were added. What is damaged is left out, be it all of it. */
export function readPage(text: string): LedgerRecord[] {
  const page = parse(text);
  if (page === null) return [];
  const records: LedgerRecord[] = [];
  for (let start = 0; start < page.rows.length; start += keptColumns) {
    const record = readCall(page, page.rows.subarray(start, start + keptColumns));
    if (isLedgerRecord(record)) records.push(record);
  }
  return records;
}

/** A page of which only the outline is sure. */
interface ParsedPage {
  readonly at: number;
  readonly callGroups: readonly ({ readonly [Name in keyof CallGroup]?: unknown } | null)[];
  readonly series: unknown;
  readonly ids: readonly unknown[];
  readonly rows: Float64Array;
}

function parse(text: string): ParsedPage | null {
  let page: unknown;
  try {
    page = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof page !== 'object' || page === null) return null;
  const { v, at, manners: callGroups, series, ids, ...numbers } = page as Record<string, unknown>;
  if (!isTime(at) || !Array.isArray(callGroups) || !Array.isArray(ids)) return null;
  const rows = v === version ? packedRows(numbers) : v === 1 ? plainRows(numbers, ids.length) : null;
  return rows === null ? null : { at, callGroups, series, ids, rows };
}

function packedRows({ calls, columns }: Readonly<Record<string, unknown>>): Float64Array | null {
  if (typeof columns !== 'string' || !isCount(calls)) return null;
  return unpackColumns(Buffer.from(columns, 'base64'), keptColumns, calls);
}

/** Of the first form: numbers as JSON, without one for the id, since each call had its own in `ids`. */
function plainRows({ rows }: Readonly<Record<string, unknown>>, calls: number): Float64Array | null {
  if (!Array.isArray(rows) || calls > mostRead) return null;
  const all = new Float64Array(calls * keptColumns);
  for (let call = 0; call < calls; call++) {
    const row: unknown[] = rows.slice(call * (keptColumns - 1), (call + 1) * (keptColumns - 1));
    row.splice(2, 0, -call - 1);
    for (let column = 0; column < keptColumns; column++) {
      const value = row[column];
      all[call * keptColumns + column] = typeof value === 'number' ? value : Number.NaN;
    }
  }
  return all;
}

function isCount(calls: unknown): calls is number {
  return Number.isInteger(calls) && (calls as number) >= 0 && (calls as number) <= mostRead;
}

/** The fields of a record in the order of the columns. */
function readCall(page: ParsedPage, row: Float64Array): LedgerRecordLike {
  const [index, sinceFirst, id, inputTokens, outputTokens, cachedTokens, cacheWrittenTokens, ...more] = row;
  const [reasoningTokens, bytesIn, bytesOut, mediaSeconds, duration, firstByte, retries, costNanoUsd] = more;
  const group = page.callGroups[index ?? none] ?? null;
  return {
    at: page.at + (sinceFirst ?? Number.NaN),
    requestId: idOf(page, id ?? none),
    keyId: group?.keyId,
    groups: group?.groups,
    protocol: group?.protocol,
    model: group?.model,
    target: group?.target,
    status: group?.status,
    outcome: group?.outcome,
    inputTokens,
    outputTokens,
    cachedTokens,
    cacheWrittenTokens,
    reasoningTokens,
    tokensKnown: group?.tokensKnown,
    bytesIn,
    bytesOut,
    mediaSeconds,
    durationMs: milliseconds(duration),
    firstByteMs: firstByte === none ? null : milliseconds(firstByte),
    retries,
    costNanoUsd,
  };
}

function idOf({ series, ids }: ParsedPage, number: number): unknown {
  if (number < 0) return ids[-number - 1];
  return typeof series === 'string' ? requestIdOf(series, number) : null;
}

function milliseconds(microseconds: number | undefined): number {
  return (microseconds ?? Number.NaN) / 1000;
}
