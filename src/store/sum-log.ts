import { withinSafe } from './ledger-format.js';
import { collectionKey, timeBytes } from './record-format.js';
import type { Bytes } from './records.js';

/*
 * What batches add to the sums of a ledger, one entry for each batch, until it is merged into the sums themselves. To
 * change each sum with each batch would cost a read and a write of its record, which is most of what a ledger costs where
 * thousands of keys take turns: each is in many entries before these are merged, and is then changed once.
 */

/** What one batch adds. */
export interface SumLogEntry {
  /** Of its sums: Unix milliseconds. */
  readonly expiresAt: number;
  readonly ids: readonly string[];
  readonly names: readonly string[];
  /** As in `LedgerSums`. */
  readonly values: Float64Array;
}

/** What a log adds to one sum. */
export interface SumChange {
  readonly id: string;
  readonly expiresAt: number;
  readonly add: ReadonlyMap<string, number>;
}

/** A log is to be merged when it has so many entries, or so many bytes: all of them are then in memory at once. */
const mostEntries = 512;
const mostBytes = 2 ** 25;

const headLengthAt = 8;
const headAt = 12;
const double = Float64Array.BYTES_PER_ELEMENT;

/**
 * Adds an entry to the log of a ledger. Belongs into a write transaction.
 * @returns true when it is time to merge the log
 */
export function appendToSumLog(log: Bytes, ledger: string, entry: SumLogEntry): boolean {
  const last = lastKey(log, ledger);
  const { place, bytes } = last === undefined ? { place: 0, bytes: 0 } : readEntryKey(last);
  const written = writeEntry(entry);
  const total = bytes + written.length;
  void log.put(entryKey(ledger, place + 1, total), written);
  return place + 1 >= mostEntries || total >= mostBytes;
}

export function isSumLogEmpty(log: Bytes, ledger: string): boolean {
  return lastKey(log, ledger) === undefined;
}

/**
 * Empties the log of a ledger. Belongs into a write transaction.
 * @returns what it held, by the order of the ids
 */
export function takeSumLog(log: Bytes, ledger: string): SumChange[] {
  const changes = new Map<string, { id: string; expiresAt: number; add: Map<string, number> }>();
  const keys: Buffer[] = [];
  const { first, behind } = boundsOf(ledger);
  for (const { key, value } of log.getRange({ start: first, end: behind })) {
    keys.push(key);
    const { expiresAt, ids, names, values } = readEntry(value);
    for (const [row, id] of ids.entries()) {
      let change = changes.get(id);
      if (change === undefined) {
        change = { id, expiresAt, add: new Map() };
        changes.set(id, change);
      }
      change.expiresAt = Math.max(change.expiresAt, expiresAt);
      for (const [column, name] of names.entries()) {
        const more = values[row * names.length + column] as number;
        if (more !== 0) change.add.set(name, withinSafe((change.add.get(name) ?? 0) + more));
      }
    }
  }
  for (const key of keys) void log.remove(key);
  // Neighbours among the records are then changed one after the other, page by page.
  return [...changes.values()].filter(({ add }) => add.size > 0).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The expiry as a double, the length of the head in four bytes, the head as JSON, the numbers. */
function writeEntry({ expiresAt, ids, names, values }: SumLogEntry): Buffer {
  const head = JSON.stringify({ ids, names });
  const headLength = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafeSlow(headAt + headLength + values.byteLength);
  bytes.writeDoubleLE(expiresAt, 0);
  bytes.writeUInt32LE(headLength, headLengthAt);
  bytes.write(head, headAt);
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), headAt + headLength);
  return bytes;
}

function readEntry(bytes: Buffer): SumLogEntry {
  const valuesAt = headAt + bytes.readUInt32LE(headLengthAt);
  const { ids, names } = JSON.parse(bytes.toString('utf8', headAt, valuesAt)) as Pick<
    SumLogEntry,
    'ids' | 'names'
  >;
  const values = new Float64Array((bytes.length - valuesAt) / double);
  new Uint8Array(values.buffer).set(bytes.subarray(valuesAt));
  return { expiresAt: bytes.readDoubleLE(0), ids, names, values };
}

function lastKey(log: Bytes, ledger: string): Buffer | undefined {
  const { first, behind } = boundsOf(ledger);
  const [last] = [...log.getKeys({ start: behind, end: first, reverse: true, limit: 1 })];
  return last;
}

/** Key of an entry: ledger, place, and the bytes of the log up to its end, which tell how long the log is. */
function entryKey(ledger: string, place: number, bytes: number): Buffer {
  return Buffer.concat([collectionKey(ledger), timeBytes(place), timeBytes(bytes)]);
}

function readEntryKey(key: Buffer): { readonly place: number; readonly bytes: number } {
  const bytesAt = key.length - double;
  return { place: key.readDoubleBE(bytesAt - double), bytes: key.readDoubleBE(bytesAt) };
}

/** Keys before and behind all entries of a ledger. */
function boundsOf(ledger: string): { readonly first: Buffer; readonly behind: Buffer } {
  return { first: entryKey(ledger, 0, 0), behind: entryKey(ledger, Number.POSITIVE_INFINITY, 0) };
}
