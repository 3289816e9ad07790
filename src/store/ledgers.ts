import type { EntryOf } from './dump.js';
import type { Asked } from './embedded-calls.js';
import { batchMark, lineBound, lineKey, lineTime, withinSafe, writerTtlMs } from './ledger-format.js';
import { nameKey, readRecord, recordKey } from './record-format.js';
import { type Bytes, getRecord, type Records, upsertRecord } from './records.js';
import type { LedgerBatch, LedgerLine, LinePage, NewLedgerLine, SumPage } from './store.js';
import {
  appendToSumLog,
  findInSumLog,
  isSumLogEmpty,
  type SumChange,
  type SumRange,
  sumLogParts,
  takeSumLog,
} from './sum-log.js';

/** The ledgers of an embedded store: their lines, and records that are swept like all others. */
export interface LedgerBase {
  /** Lines by `lineKey`. */
  readonly lines: Bytes;
  /** How long each ledger's lines are kept, in milliseconds, by its name. */
  readonly retention: Bytes;
  /** Sums, and the number of each writer's last batch. Each ledger has its own collections. */
  readonly sums: Records;
  /** What is still to be added to the sums. */
  readonly sumLog: Bytes;
}

/** Sums change all the time. Their position in the index of expiry changes only once in this time. */
const expiryStepMs = 3_600_000;

/** Returns the collection of a ledger's sums. */
export const sumsOf = (ledger: string): string => `${ledger}-sums`;
const writersOf = (ledger: string): string => `${ledger}-writers`;

/**
 * Adds a batch. Must be called within a write transaction.
 * @returns false if it was added before
 */
export function appendBatch(base: LedgerBase, ledger: string, batch: LedgerBatch): boolean {
  const last = getRecord(base.sums, writersOf(ledger), batch.writer);
  if (last !== null && Number(last.value) >= batch.number) return false;
  const writer = { collection: writersOf(ledger), id: batch.writer, expiresAt: steppedExpiry(writerTtlMs) };
  upsertRecord(base.sums, writer, () => `${batch.number}`);
  if (retentionOf(base, ledger) !== batch.lineTtlMs) {
    void base.retention.put(nameKey(ledger), Buffer.from(`${batch.lineTtlMs}`));
  }
  const mark = batchMark(batch);
  for (const [index, { at, value }] of batch.lines.entries()) {
    void base.lines.put(lineKey(ledger, at, mark, index), bytesOf(value));
  }
  const { ids, names, values, ttlMs } = batch.sums;
  if (ids.length === 0) return true;
  const entry = { expiresAt: steppedExpiry(ttlMs), ids, names, values };
  // At most one of the parts that are due, since another batch follows soon.
  const due = appendToSumLog(base.sumLog, ledger, entry);
  if (due !== null) mergePart(base, ledger, due);
  return true;
}

/**
 * Merges the log of sums of a ledger into the sums, and empties it.
 * @param change runs a function in a write transaction
 */
export function mergeSums(base: LedgerBase, change: (work: () => void) => void, ledger: string): void {
  for (const part of sumLogParts(ledger)) change(() => mergePart(base, ledger, part));
}

/** Merges one part of the log. Must be called within a write transaction. */
function mergePart(base: LedgerBase, ledger: string, part: string): void {
  const collection = sumsOf(ledger);
  for (const { id, expiresAt, add } of takeSumLog(base.sumLog, part)) {
    upsertRecord(base.sums, { collection, id, expiresAt }, (text) => addToText(text, add));
  }
}

function bytesOf(value: NewLedgerLine['value']): Buffer {
  return typeof value === 'string'
    ? Buffer.from(value)
    : Buffer.from(value.buffer, value.byteOffset, value.length);
}

function steppedExpiry(ttlMs: number): number {
  return Math.ceil((Date.now() + Math.max(1, ttlMs)) / expiryStepMs) * expiryStepMs;
}

function readValues(text: string | null): Map<string, number> {
  return new Map(text === null ? [] : (JSON.parse(text) as [string, number][]));
}

function writeValues(values: ReadonlyMap<string, number>): string {
  return JSON.stringify([...values]);
}

function added(values: Map<string, number>, add: ReadonlyMap<string, number>): Map<string, number> {
  for (const [name, value] of add) values.set(name, withinSafe((values.get(name) ?? 0) + value));
  return values;
}

/**
 * Adds to the numbers of a sum in its stored form. Replacing them within the text takes a third of the time of parsing
 * it and writing it again.
 */
function addToText(text: string | null, add: ReadonlyMap<string, number>): string {
  if (text === null || text.includes('\\')) return writeValues(added(readValues(text), add));
  let changed = '';
  let copied = 0;
  let known = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at)) {
    const nameEnd = text.indexOf('"', at + 1);
    const numberAt = nameEnd + '",'.length;
    const more = add.get(text.slice(at + 1, nameEnd));
    at = text.indexOf(']', numberAt);
    if (more === undefined) continue;
    changed += text.slice(copied, numberAt) + withinSafe(Number(text.slice(numberAt, at)) + more);
    copied = at;
    known++;
  }
  return known === add.size ? changed + text.slice(copied) : writeValues(added(readValues(text), add));
}

function retentionOf(base: LedgerBase, ledger: string): number | null {
  const bytes = base.retention.get(nameKey(ledger));
  return bytes === undefined ? null : Number(bytes.toString());
}

/** Lists the ledgers with the time for which each keeps its lines. */
export function retentions({
  retention,
}: LedgerBase): { readonly ledger: string; readonly lineTtlMs: number }[] {
  return [...retention.getRange({ start: Buffer.from([0]) })].map(({ key, value }) => ({
    ledger: key.toString('utf8', 1),
    lineTtlMs: Number(value.toString()),
  }));
}

/** The `put` functions write what was read elsewhere. They must be called within a write transaction. */
export function putRetention(base: LedgerBase, { ledger, lineTtlMs }: EntryOf<'ledger'>): void {
  void base.retention.put(nameKey(ledger), Buffer.from(`${lineTtlMs}`));
}

/** @param place of the line among all that are written. Keeps lines of the same time in order */
export function putLine(base: LedgerBase, { ledger, at, value }: EntryOf<'line'>, place: number): void {
  const mark = batchMark({ writer: 'import', number: 1 });
  void base.lines.put(lineKey(ledger, at, mark, place), Buffer.from(value));
}

export function putSum(base: LedgerBase, { ledger, id, values, expiresAt }: EntryOf<'sum'>): void {
  const text = writeValues(new Map(Object.entries(values)));
  upsertRecord(base.sums, { collection: sumsOf(ledger), id, expiresAt }, () => text);
}

/** Parses a record of a sum. */
export function readSumRecord(bytes: Buffer): Pick<EntryOf<'sum'>, 'id' | 'values' | 'expiresAt'> {
  const { id, value, expiresAt } = readRecord(bytes);
  return { id, values: Object.fromEntries(readValues(value)), expiresAt };
}

/** Returns the earliest time that is still kept. */
function firstKept(ttlMs: number | null): number {
  return ttlMs === null ? 0 : Math.max(0, Math.floor(Date.now() - ttlMs) + 1);
}

/** Reads a page of lines, as `Ledger.readLines` does. */
export function readLines(base: LedgerBase, ...[ledger, range, limit, from]: Asked<'readLines'>): LinePage {
  const first = lineBound(ledger, Math.max(range.from, firstKept(retentionOf(base, ledger))));
  const after = from === null ? null : Buffer.from(from, 'base64url');
  const start = after !== null && Buffer.compare(after, first) > 0 ? after : first;
  const end = lineBound(ledger, Math.max(0, range.until));
  const lines: LedgerLine[] = [];
  if (Buffer.compare(start, end) >= 0) return { lines, next: null };
  let last: Buffer | null = null;
  for (const { key, value } of base.lines.getRange({ start, end, limit: limit + 2 })) {
    if (after?.equals(key)) continue;
    if (lines.length === limit) return { lines, next: last?.toString('base64url') ?? from };
    lines.push({ at: lineTime(key), value: value.toString() });
    last = key;
  }
  return { lines, next: null };
}

/** A request for a page of sums. */
export interface SumQuestion {
  readonly ledger: string;
  readonly range: SumRange;
  readonly limit: number;
  readonly from: string | null;
}

/**
 * Reads pages of sums, as `Ledger.readSums` does. If the log of sums holds little for a first page, as for the sums of
 * one key, it is added to the page. Otherwise the log is merged before, which takes a second with a hundred thousand
 * keys.
 * @param change runs a function in a write transaction
 * @returns a page for each question
 */
export function readSums(
  base: LedgerBase,
  change: (work: () => void) => void,
  questions: readonly SumQuestion[],
): readonly SumPage[] {
  const pages = new Map<SumQuestion, SumPage>();
  for (const ledger of new Set(questions.map((question) => question.ledger))) {
    const firsts = questions.filter((question) => question.ledger === ledger && question.from === null);
    if (firsts.length === 0 || isSumLogEmpty(base.sumLog, ledger)) continue;
    const most = Math.max(...firsts.map(({ limit }) => limit));
    const logged = findInSumLog(
      base.sumLog,
      ledger,
      firsts.map(({ range }) => range),
      most,
    );
    for (const [index, question] of firsts.entries()) {
      const page = readBesideLog(base, question, logged[index] ?? null);
      if (page !== null) pages.set(question, page);
    }
    if (firsts.every((question) => pages.has(question))) continue;
    mergeSums(base, change, ledger);
    base.sums.records.resetReadTxn();
  }
  return questions.map((question) => pages.get(question) ?? readStoredSums(base, question));
}

/** @returns null if one page does not hold everything */
function readBesideLog(
  base: LedgerBase,
  question: SumQuestion,
  logged: readonly SumChange[] | null,
): SumPage | null {
  const stored = logged === null ? null : readStoredSums(base, question);
  if (stored === null || logged === null || stored.next !== null) return null;
  const sums = new Map(stored.sums.map(({ id, values }) => [id, new Map(Object.entries(values))]));
  for (const { id, add } of logged) sums.set(id, added(sums.get(id) ?? new Map(), add));
  if (sums.size > question.limit) return null;
  const inOrder = [...sums].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return { sums: inOrder.map(([id, values]) => ({ id, values: Object.fromEntries(values) })), next: null };
}

/** Reads a page of sums without the log of sums. */
function readStoredSums(base: LedgerBase, { ledger, range, limit, from }: SumQuestion): SumPage {
  const collection = sumsOf(ledger);
  const now = Date.now();
  const start = recordKey(collection, nameKey(from ?? range.from));
  const end =
    range.until === null ? recordKey(collection, afterNames) : recordKey(collection, nameKey(range.until));
  const sums: { id: string; values: Readonly<Record<string, number>> }[] = [];
  if (Buffer.compare(start, end) >= 0) return { sums, next: null };
  let last = from;
  let seen = 0;
  for (const { value } of base.sums.records.getRange({ start, end, limit: limit + 2 })) {
    const record = readRecord(value);
    if (record.id === from) continue;
    if (seen === limit) return { sums, next: last };
    seen += 1;
    last = record.id;
    if (record.expiresAt > now) {
      sums.push({ id: record.id, values: Object.fromEntries(readValues(record.value)) });
    }
  }
  return { sums, next: null };
}

/** Sorts after all names that are not hashed. No id of a sum is long enough to be hashed. */
const afterNames = Buffer.from([2]);

/**
 * Removes lines of all ledgers that are no longer kept. Must be called within a write transaction.
 * @param most maximum number of lines to remove
 * @returns how many were removed; fewer than `most` if none is left
 */
export function sweepLines(base: LedgerBase, most: number): number {
  let swept = 0;
  for (const { ledger, lineTtlMs } of retentions(base)) {
    const end = lineBound(ledger, firstKept(lineTtlMs));
    const range = { start: lineBound(ledger, 0), end, limit: most - swept };
    for (const key of [...base.lines.getKeys(range)]) {
      void base.lines.remove(key);
      swept += 1;
    }
    if (swept === most) break;
  }
  return swept;
}
