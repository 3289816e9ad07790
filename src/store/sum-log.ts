import { withinSafe } from './ledger-format.js';
import { collectionKey, timeBytes } from './record-format.js';
import type { Bytes } from './records.js';
import type { LedgerSums } from './store.js';

/*
 * Log of what batches add to the sums of a ledger. It has one entry for each batch until it is merged into the sums.
 * Changing each sum with each batch would cost a read and a write of its record. With thousands of active keys, that is
 * most of the cost of a ledger: each key is in many entries, and merging them changes its record once. The amounts of a
 * large batch are spread over parts of the log, each of which is merged on its own. Changing a hundred thousand sums in
 * one transaction would take seconds, in which nothing else on the host could write.
 */

/** The amounts that one batch adds. */
interface SumLogEntry extends Omit<LedgerSums, 'ttlMs'> {
  /** Expiry of its sums, in Unix milliseconds. */
  readonly expiresAt: number;
}

/** The amounts that a log adds to one sum. */
export interface SumChange {
  readonly id: string;
  readonly expiresAt: number;
  readonly add: ReadonlyMap<string, number>;
}

/**
 * Number of parts of a log, and least number of sums of a batch that is spread over them. Smaller batches are entries
 * of the first part.
 */
const parts = 16;
const leastSpread = 256;
/** Number of entries, and of bytes, from which a part has to be merged. */
const mostEntries = 512;
const mostBytes = 2 ** 21;

const firstRows = 64;
const headLengthAt = 8;
const headAt = 12;
const double = Float64Array.BYTES_PER_ELEMENT;

/** Returns the names of the parts of a ledger's log. Existing stores have the name of the first part. */
export function sumLogParts(ledger: string): readonly string[] {
  return Array.from({ length: parts }, (_, part) => (part === 0 ? ledger : `${ledger}/${part}`));
}

/**
 * Adds an entry to the log of a ledger. Must be called within a write transaction.
 * @returns a part of the log that has to be merged, or null
 */
export function appendToSumLog(log: Bytes, ledger: string, entry: SumLogEntry): string | null {
  if (entry.ids.length < leastSpread) return appendToPart(log, ledger, entry) ? ledger : null;
  let due: string | null = null;
  const names = sumLogParts(ledger);
  for (const [part, rows] of rowsOfParts(entry.ids).entries()) {
    const name = names[part];
    if (name !== undefined && rows.length > 0 && appendToPart(log, name, rowsOf(entry, rows))) due = name;
  }
  return due;
}

function appendToPart(log: Bytes, part: string, entry: SumLogEntry): boolean {
  const last = lastKey(log, part);
  const { place, bytes } = last === undefined ? { place: 0, bytes: 0 } : readEntryKey(last);
  const written = writeEntry(entry);
  const total = bytes + written.length;
  void log.put(entryKey(part, place + 1, total), written);
  return place + 1 >= mostEntries || total >= mostBytes;
}

/**
 * Divides sums into parts in the order of their ids. The records that a part changes are then neighbours, on few pages:
 * sums of random parts would have nearly every page written once for each part. A sum may be in several parts, since
 * the next batch is divided at other ids.
 */
function rowsOfParts(ids: readonly string[]): readonly (readonly number[])[] {
  const order = [...ids.keys()].sort((one, other) => ((ids[one] ?? '') < (ids[other] ?? '') ? -1 : 1));
  const most = Math.ceil(order.length / parts);
  return Array.from({ length: parts }, (_, part) => order.slice(part * most, (part + 1) * most));
}

function rowsOf({ expiresAt, ids, names, values }: SumLogEntry, rows: readonly number[]): SumLogEntry {
  const width = names.length;
  const own = new Float64Array(rows.length * width);
  for (const [at, row] of rows.entries())
    own.set(values.subarray(row * width, (row + 1) * width), at * width);
  return { expiresAt, ids: rows.map((row) => ids[row] ?? ''), names, values: own };
}

export function isSumLogEmpty(log: Bytes, ledger: string): boolean {
  return sumLogParts(ledger).every((part) => lastKey(log, part) === undefined);
}

/** A range of ids by their bytes, excluding `until`. Null for no upper bound. */
export interface SumRange {
  readonly from: string;
  readonly until: string | null;
}

/**
 * Finds what the log of a ledger adds to few sums, without emptying it. Entries that name none of them are not parsed.
 * @param most maximum number of sums of a range
 * @returns for each range the changes of its sums, ordered by id; null if it has more sums than `most`
 */
export function findInSumLog(
  log: Bytes,
  ledger: string,
  ranges: readonly SumRange[],
  most: number,
): (readonly SumChange[] | null)[] {
  const searches = ranges.map((range) => new RangeSearch(range));
  for (const part of sumLogParts(ledger)) {
    const { first, behind } = boundsOf(part);
    for (const { value } of log.getRange({ start: first, end: behind })) {
      const least = leastIdOf(value);
      const concerned = searches.filter(
        (search) => search.found.size <= most && search.mayConcern(value, least),
      );
      if (concerned.length === 0) continue;
      const entry = readEntry(value);
      for (const search of concerned) search.take(entry);
    }
  }
  return searches.map(({ found }) => (found.size > most ? null : found.changes()));
}

/** Collects what a range of ids has in the entries of a log. */
class RangeSearch {
  readonly found = new SumTable();
  readonly #from: Buffer;
  readonly #until: Buffer | null;
  /** Common prefix of all ids of the range, and its form in the head of an entry. */
  readonly #start: string;
  readonly #startInHead: Buffer;

  constructor({ from, until }: SumRange) {
    this.#from = Buffer.from(from);
    this.#until = until === null ? null : Buffer.from(until);
    this.#start = commonStart(from, until ?? '');
    this.#startInHead = Buffer.from(`"${this.#start}`);
  }

  /** @param least id of the entry; null if the entry does not have it */
  mayConcern(bytes: Buffer, least: Buffer | null): boolean {
    if (least !== null && this.#until !== null && least.compare(this.#until) >= 0) return false;
    return bytes.subarray(headAt, valuesAtOf(bytes)).includes(this.#startInHead);
  }

  take(entry: SumLogEntry): void {
    const rows = entry.ids.flatMap((id, row) => (this.#has(id) ? [row] : []));
    if (rows.length > 0) this.found.add(rowsOf(entry, rows));
  }

  #has(id: string): boolean {
    if (!id.startsWith(this.#start)) return false;
    const bytes = Buffer.from(id);
    return bytes.compare(this.#from) >= 0 && (this.#until === null || bytes.compare(this.#until) < 0);
  }
}

/** Returns the common prefix of two texts, up to the first character that JSON escapes. */
function commonStart(one: string, other: string): string {
  const [plain = ''] = /^[ !#-[\]-~]*/.exec(one) ?? [];
  let length = 0;
  while (length < plain.length && plain[length] === other[length]) length++;
  return plain.slice(0, length);
}

/**
 * Empties a part of a log. Must be called within a write transaction.
 * @returns what it held, ordered by id
 */
export function takeSumLog(log: Bytes, part: string): SumChange[] {
  const total = new SumTable();
  const keys: Buffer[] = [];
  const { first, behind } = boundsOf(part);
  for (const { key, value } of log.getRange({ start: first, end: behind })) {
    keys.push(key);
    total.add(readEntry(value));
  }
  for (const key of keys) void log.remove(key);
  return total.changes();
}

/**
 * Adds up entries: a row for each sum, and a column of numbers for each name. With thousands of active keys, a map of
 * names for each sum took twice as long.
 */
class SumTable {
  readonly #rows = new Map<string, number>();
  readonly #columns = new Map<string, Float64Array>();
  #expiresAt: Float64Array = new Float64Array(firstRows);

  /** Number of sums. */
  get size(): number {
    return this.#rows.size;
  }

  add({ expiresAt, ids, names, values }: SumLogEntry): void {
    const rows = ids.map((id) => this.#rowOf(id));
    for (const row of rows) this.#expiresAt[row] = Math.max(this.#expiresAt[row] as number, expiresAt);
    for (const [index, name] of names.entries()) {
      const column = this.#column(name);
      let at = index;
      for (const row of rows) {
        column[row] = withinSafe((column[row] as number) + (values[at] as number));
        at += names.length;
      }
    }
  }

  /** Returns the amounts that are not zero, ordered by id. */
  changes(): SumChange[] {
    const columns = [...this.#columns];
    const changes: SumChange[] = [];
    for (const [id, row] of this.#rows) {
      const add = new Map<string, number>();
      for (const [name, column] of columns) if (column[row] !== 0) add.set(name, column[row] as number);
      if (add.size > 0) changes.push({ id, expiresAt: this.#expiresAt[row] as number, add });
    }
    // Neighbouring records are then changed one after the other, page by page.
    return changes.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  #rowOf(id: string): number {
    const known = this.#rows.get(id);
    if (known !== undefined) return known;
    const row = this.#rows.size;
    this.#rows.set(id, row);
    if (row === this.#expiresAt.length) this.#grow();
    return row;
  }

  #column(name: string): Float64Array {
    let column = this.#columns.get(name);
    if (column === undefined) {
      column = new Float64Array(this.#expiresAt.length);
      this.#columns.set(name, column);
    }
    return column;
  }

  #grow(): void {
    this.#expiresAt = grown(this.#expiresAt);
    for (const [name, column] of this.#columns) this.#columns.set(name, grown(column));
  }
}

function grown(column: Float64Array): Float64Array {
  const larger = new Float64Array(column.length * 2);
  larger.set(column);
  return larger;
}

/**
 * Encodes an entry: the expiry as a double, the length of the head in four bytes, the head as JSON, the numbers. The
 * head begins with the least of the ids by their bytes. Entries of older revisions lack it.
 */
function writeEntry({ expiresAt, ids, names, values }: SumLogEntry): Buffer {
  const head = `${leastBegin}${JSON.stringify(leastOf(ids))}${leastEnd}${JSON.stringify(ids)},"names":${JSON.stringify(names)}}`;
  const headLength = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafeSlow(headAt + headLength + values.byteLength);
  bytes.writeDoubleLE(expiresAt, 0);
  bytes.writeUInt32LE(headLength, headLengthAt);
  bytes.write(head, headAt);
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), headAt + headLength);
  return bytes;
}

const leastBegin = '{"least":';
/** Unambiguous, since quotation marks within an id are escaped. */
const leastEnd = ',"ids":';

/** Returns the least of ids by their bytes. The order of texts differs for characters beyond the basic plane. */
function leastOf(ids: readonly string[]): string {
  let least = Buffer.from(ids[0] ?? '');
  for (const id of ids) {
    const bytes = Buffer.from(id);
    if (bytes.compare(least) < 0) least = bytes;
  }
  return least.toString();
}

/** Returns the bytes of the least id of an entry; null if the entry does not have it. */
function leastIdOf(bytes: Buffer): Buffer | null {
  const at = headAt + leastBegin.length;
  if (bytes.toString('latin1', headAt, at) !== leastBegin) return null;
  const id: unknown = JSON.parse(bytes.toString('utf8', at, bytes.indexOf(leastEnd, at)));
  return typeof id === 'string' ? Buffer.from(id) : null;
}

function valuesAtOf(bytes: Buffer): number {
  return headAt + bytes.readUInt32LE(headLengthAt);
}

function readEntry(bytes: Buffer): SumLogEntry {
  const valuesAt = valuesAtOf(bytes);
  const { ids, names } = JSON.parse(bytes.toString('utf8', headAt, valuesAt)) as Pick<
    SumLogEntry,
    'ids' | 'names'
  >;
  const values = new Float64Array((bytes.length - valuesAt) / double);
  new Uint8Array(values.buffer).set(bytes.subarray(valuesAt));
  return { expiresAt: bytes.readDoubleLE(0), ids, names, values };
}

function lastKey(log: Bytes, part: string): Buffer | undefined {
  const { first, behind } = boundsOf(part);
  const [last] = [...log.getKeys({ start: behind, end: first, reverse: true, limit: 1 })];
  return last;
}

/**
 * Returns the key of an entry: part, position, and the number of bytes of the part up to the entry's end, from which
 * the part's size is known.
 */
function entryKey(part: string, place: number, bytes: number): Buffer {
  return Buffer.concat([collectionKey(part), timeBytes(place), timeBytes(bytes)]);
}

function readEntryKey(key: Buffer): { readonly place: number; readonly bytes: number } {
  const bytesAt = key.length - double;
  return { place: key.readDoubleBE(bytesAt - double), bytes: key.readDoubleBE(bytesAt) };
}

/** Returns keys before and after all entries of a part. */
function boundsOf(part: string): { readonly first: Buffer; readonly behind: Buffer } {
  return { first: entryKey(part, 0, 0), behind: entryKey(part, Number.POSITIVE_INFINITY, 0) };
}
