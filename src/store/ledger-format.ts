import { createHash } from 'node:crypto';
import { isObject, type JsonObject } from '../wire/json.js';
import { collectionKey, longestName, timeBytes } from './record-format.js';
import type { LedgerBatch, LedgerLine, LedgerSums, NewLedgerLine, StoredCall } from './store.js';

/** How long a writer of batches is remembered after its last batch. */
export const writerTtlMs = 7 * 24 * 60 * 60 * 1000;

const markBytes = 8;
const indexBytes = 4;

/** Returns a line to append as it is read later. */
export function storedLine({ at, value }: NewLedgerLine): LedgerLine {
  return { at, value: typeof value === 'string' ? value : Buffer.from(value).toString() };
}

/**
 * Checks that a store can accept a batch.
 * @throws RangeError if a time or a number is not whole, or an id is too long
 */
export function checkBatch({ number, lines, lineTtlMs, sums }: LedgerBatch): void {
  if (!Number.isSafeInteger(number) || number < 1) throw new RangeError(`${number} is no number of a batch`);
  checkTtl(lineTtlMs);
  for (const { at } of lines) {
    if (!Number.isSafeInteger(at) || at < 0) throw new RangeError(`${at} is no time of a line`);
  }
  checkSums(sums);
}

function checkSums({ ttlMs, names, ids, values }: LedgerSums): void {
  checkTtl(ttlMs);
  if (values.length !== ids.length * names.length) throw new RangeError('there is no number for each name');
  for (const id of ids) {
    if (isTooLong(id)) throw new RangeError(`the id of a sum is too long: ${id}`);
  }
  // There are tens of thousands of values. Until this code is compiled, a loop without an iterator takes a fraction of
  // the time.
  for (let index = 0; index < values.length; index++) {
    if (!Number.isSafeInteger(values[index]))
      throw new RangeError(`${values[index]} cannot be added to a sum`);
  }
}

/** A UTF-16 code unit has at most three bytes in UTF-8, so that only a few ids have to be measured. */
function isTooLong(id: string): boolean {
  return id.length * 3 > longestName && Buffer.byteLength(id) > longestName;
}

/**
 * Checks that ids can be compared with the bounds of a range.
 * @throws RangeError if a bound is longer than an id may be
 */
export function checkSumRange(range: { readonly from: string; readonly until: string | null }): void {
  for (const bound of [range.from, range.until ?? '']) {
    if (Buffer.byteLength(bound) > longestName) throw new RangeError(`no id of a sum is so long: ${bound}`);
  }
}

function checkTtl(ttlMs: number): void {
  if (!Number.isSafeInteger(Math.ceil(ttlMs))) throw new RangeError(`${ttlMs} is no time to keep something`);
}

/** Distinguishes the lines of a batch from those of other batches in the same millisecond. */
export function batchMark({ writer, number }: Pick<LedgerBatch, 'writer' | 'number'>): Buffer {
  return createHash('sha256').update(`${number} ${writer}`).digest().subarray(0, markBytes);
}

/** Limits a whole number to the safe integers. */
export function withinSafe(value: number): number {
  return Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}

/** Returns the key of a line: ledger, time, mark of the batch, index in the batch. */
export function lineKey(ledger: string, at: number, mark: Buffer, index: number): Buffer {
  const place = Buffer.alloc(indexBytes);
  place.writeUInt32BE(index);
  return Buffer.concat([lineBound(ledger, at), mark, place]);
}

/** Returns a key that sorts before all lines of a time. */
export function lineBound(ledger: string, at: number): Buffer {
  return Buffer.concat([collectionKey(ledger), timeBytes(at)]);
}

/** Returns the time of a line's key. */
export function lineTime(key: Buffer): number {
  return key.readDoubleBE(key.length - indexBytes - markBytes - 8);
}

/** Form of a page of calls that were rows of another store. The gateway's packed forms have the other numbers. */
const form = 4;

/** Writes calls that were rows as the text of one line, for a store without a table of calls. */
export function writeCallLine(calls: readonly StoredCall[]): string {
  return JSON.stringify({ v: form, calls });
}

/** @returns the calls of such a text, which was parsed as JSON; null for any other */
export function readCallLine(page: JsonObject | null): readonly StoredCall[] | null {
  return page?.v === form && Array.isArray(page.calls) ? page.calls.filter(isStoredCall) : null;
}

function isStoredCall(call: unknown): call is StoredCall {
  return isObject(call) && typeof call.at === 'number' && isObject(call.values);
}
