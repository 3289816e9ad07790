import { serviceTiers } from '../conversation/usage.js';
import { none, unknownCost } from '../metrics/call-record.js';
import { fromColumn, toColumn } from '../store/postgres-text.js';
import type { StoredCall } from '../store/store.js';
import { requestSeries } from '../wire/head.js';
import { type CallGroup, type CallTable, column, rowLength } from './call-table.js';
import {
  isLedgerRecord,
  type LedgerRecord,
  type LedgerRecordLike,
  newerFields,
  recordFields,
} from './ledger-record.js';

/*
 * Writes calls as rows for a database: the text format of COPY, with the columns of `callColumns`
 * (https://www.postgresql.org/docs/current/sql-copy.html). Bytes are written into one buffer: a string per number would
 * be most of a row's cost.
 */

const [tab, lineFeed, point, zero] = [9, 10, 46, 48];
const nothing = Buffer.from('\\N\t');
const tiers = serviceTiers.map((tier) => Buffer.from(`${tier}\t`));
const series = Buffer.from(requestSeries);
const hexDigits = Buffer.from('0123456789abcdef');
/** A number has at most 24 characters, a time and a numbered id fewer than 40. */
const maxOfNumbers = rowLength * 25 + 80;
const msPerSecond = 1000;

/** Reused, since it holds the rows of one caller at a time. */
let bytes = Buffer.allocUnsafeSlow(256 * 1024);
let end = 0;
/** The bytes common to the rows of each group of a table. */
const ofGroups: Buffer[] = [];

/** @returns a copy of the rows of a table's calls, each with its line end */
export function writeRows(table: CallTable): Buffer {
  const { rows, length, callGroups, ids, at } = table;
  for (const [index, group] of callGroups.entries()) ofGroups[index] = groupBytes(group);
  end = 0;
  const second = Math.floor(at / msPerSecond);
  const seconds = [timeBytes(second), timeBytes(second + 1)] as const;
  const sinceSecond = at - second * msPerSecond;
  for (let call = 0; call < length; call++) {
    const start = call * rowLength;
    const group = ofGroups[rows[start + column.group] as number] as Buffer;
    const id = rows[start + column.id] as number;
    const ownId = id < 0 ? Buffer.from(escaped(ids[-id - 1] as string)) : null;
    makeRoom(maxOfNumbers + group.length + (ownId?.length ?? 0));
    const ms = sinceSecond + (rows[start + column.since] as number);
    put(ms < msPerSecond ? seconds[0] : seconds[1]);
    putThousandths(ms % msPerSecond);
    bytes[end++] = tab;
    if (ownId === null) putNumberedId(id);
    else put(ownId);
    bytes[end++] = tab;
    put(group);
    put(tiers[rows[start + column.tier] as number] ?? (tiers[0] as Buffer));
    for (let index = column.inputTokens; index <= column.reasoningTokens; index++)
      putWhole(rows[start + index] as number);
    for (let index = column.audioInputTokens; index <= column.cacheWrittenHourTokens; index++)
      putWhole(rows[start + index] as number);
    putWhole(rows[start + column.videoInputTokens] as number);
    putWhole(rows[start + column.characters] as number);
    putWhole(rows[start + column.searches] as number);
    putWhole(rows[start + column.bytesIn] as number);
    putWhole(rows[start + column.bytesOut] as number);
    putNumber(rows[start + column.mediaSeconds] as number);
    putMilliseconds(rows[start + column.duration] as number);
    if (rows[start + column.firstByte] === none) put(nothing);
    else putMilliseconds(rows[start + column.firstByte] as number);
    putWhole(rows[start + column.retries] as number);
    putWhole(rows[start + column.units] as number);
    putWhole(rows[start + column.costNanoUsd] as number);
    if (rows[start + column.paidNanoUsd] === unknownCost) put(nothing);
    else putWhole(rows[start + column.paidNanoUsd] as number);
    bytes[end - 1] = lineFeed;
  }
  ofGroups.length = 0;
  return Buffer.from(bytes.subarray(0, end));
}

function makeRoom(more: number): void {
  if (end + more <= bytes.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * bytes.length, end + more));
  bytes.copy(larger, 0, 0, end);
  bytes = larger;
}

function put(part: Buffer): void {
  end += part.copy(bytes, end);
}

/** A time up to its decimal point: a table's rows are of two seconds. In SQL, years above 9999 have more digits. */
function timeBytes(second: number): Buffer {
  const text = new Date(Math.min(second * msPerSecond, 8_640_000_000_000_000)).toISOString();
  return Buffer.from(`${text.replace(/^\+0*/, '').slice(0, -5).replace('T', ' ')}.`);
}

function putThousandths(ms: number): void {
  bytes[end++] = zero + ((ms / 100) | 0);
  bytes[end++] = zero + (((ms / 10) | 0) % 10);
  bytes[end++] = zero + (ms % 10);
}

function putNumberedId(number: number): void {
  put(series);
  for (let shift = 28; shift >= 0; shift -= 4) bytes[end++] = hexDigits[(number >>> shift) & 15] as number;
}

/** Writes a whole number and a tab. Fractions are rounded; a value that the column cannot hold is written as zero. */
function putWhole(value: number): void {
  if (value >= 0 && value < 0x7fff_ffff && value === (value | 0)) {
    putDigits(value);
    bytes[end++] = tab;
    return;
  }
  const whole = Math.round(value);
  putNumber(Number.isSafeInteger(whole) ? whole : 0);
}

/** Writes the digits of a whole number from 0 to below 2^31. */
function putDigits(value: number): void {
  if (value < 10) {
    bytes[end++] = zero + value;
    return;
  }
  let digits = 1;
  for (let rest = value; rest >= 10; rest = (rest / 10) | 0) digits++;
  let rest = value;
  for (let place = end + digits - 1; place >= end; place--) {
    const before = (rest / 10) | 0;
    bytes[place] = zero + (rest - before * 10);
    rest = before;
  }
  end += digits;
}

/** Writes any number and a tab; NaN and infinities are written as zero. */
function putNumber(value: number): void {
  if (value === 0 || !Number.isFinite(value)) bytes[end++] = zero;
  else end += bytes.write(`${value}`, end, 'latin1');
  bytes[end++] = tab;
}

/** Writes microseconds as milliseconds, and a tab. */
function putMilliseconds(microseconds: number): void {
  if (!(microseconds >= 0 && microseconds < 0x7fff_ffff)) {
    putNumber(microseconds / 1000);
    return;
  }
  const ms = (microseconds / 1000) | 0;
  putDigits(ms);
  const rest = (microseconds | 0) - ms * 1000;
  if (rest > 0) {
    bytes[end++] = point;
    putThousandths(rest);
  }
  bytes[end++] = tab;
}

/** The columns common to the rows of a group, starting with the key, each with its tab. */
function groupBytes(group: CallGroup): Buffer {
  const { keyId, groups, protocol, model, target, status, outcome, tokensKnown, geo } = group;
  if (groups !== lastGroups.groups) lastGroups = { groups, text: escaped(arrayText(groups)) };
  return Buffer.from(
    `${escaped(keyId)}\t${lastGroups.text}\t${escaped(protocol)}\t${escaped(model)}\t${escaped(target)}` +
      `\t${status}\t${outcome}\t${tokensKnown}\t${escaped(geo)}\t`,
  );
}

/** Cached, since successive keys often have the same groups. */
let lastGroups: { readonly groups: readonly string[]; readonly text: string } = { groups: [], text: '{}' };

function arrayText(elements: readonly string[]): string {
  return `{${elements.map((each) => `"${each.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`;
}

/** Control characters (`COPY` accepts most of them unescaped) and the escape character itself. */
const special = /[\0-\r\\]/;

/** A text escaped for `COPY`. */
function escaped(text: string | null): string {
  if (text === null) return '\\N';
  if (!special.test(text)) return text;
  return toColumn(text)
    .replaceAll('\\', '\\\\')
    .replaceAll('\t', '\\t')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r');
}

/** Each field of a record except its time, with its column and whether that holds a number. */
const fields = recordFields
  .filter(([name]) => name !== 'at')
  .map(([name, fits]) => ({
    name,
    column: name === 'groups' ? 'key_groups' : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    isNumber: fits(0),
  }));

/** @returns the record of a row, or null for a row that no gateway wrote */
export function readRow({ at, values }: StoredCall): LedgerRecord | null {
  const record: { -readonly [Name in keyof LedgerRecordLike]: unknown } = { at, ...newerFields };
  for (const { name, column: stored, isNumber } of fields) {
    const value = values[stored];
    if (value === undefined) continue;
    if (typeof value === 'string') record[name] = isNumber ? Number(value) : fromColumn(value);
    else record[name] = Array.isArray(value) ? value.map((each) => fromColumn(`${each}`)) : value;
  }
  return isLedgerRecord(record) ? record : null;
}
