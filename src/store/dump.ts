import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { isObject } from '../wire/json.js';
import type { HeldRecord } from './record-format.js';
import type { StoredCall } from './store.js';

/** What a store holds, in the order in which it is written; claims, which last for seconds, are no part of it. */
export type DumpEntry = RecordEntry | OwnedEntry | LedgerEntry | LineEntry | CallEntry | SumEntry;

/** Times are Unix milliseconds, as in all entries. */
export interface RecordEntry extends HeldRecord {
  readonly type: 'record';
  readonly collection: string;
}

/** A record of an owner, of whom only the SHA-256 is known; so it is with a long id. */
export interface OwnedEntry {
  readonly type: 'owned';
  /** 64 hex digits. */
  readonly owner: string;
  readonly id: string | null;
  /** 64 hex digits; null beside an id. */
  readonly idHash: string | null;
  readonly value: string;
  /** As `countedBytes` counts them. */
  readonly bytes: number;
  readonly expiresAt: number;
}

/** How long a ledger keeps its lines. Comes before all else of the ledger. */
export interface LedgerEntry {
  readonly type: 'ledger';
  readonly ledger: string;
  readonly lineTtlMs: number;
}

export interface LineEntry {
  readonly type: 'line';
  readonly ledger: string;
  readonly at: number;
  readonly value: string;
}

/** A row of the table of calls, which come in the order of their time. */
export interface CallEntry extends StoredCall {
  readonly type: 'call';
}

export interface SumEntry {
  readonly type: 'sum';
  readonly ledger: string;
  readonly id: string;
  readonly values: Readonly<Record<string, number>>;
  readonly expiresAt: number;
}

/** Takes entries in their order, and keeps them all at the end or none of them. */
export interface DumpTarget {
  write(entries: readonly DumpEntry[]): Promise<void>;
  /** Everything was written: it is kept from now on. */
  finish(): Promise<void>;
  /** Leaves nothing of it. */
  discard(): Promise<void>;
}

/** Entries that are in memory at once. */
export const entriesAtOnce = 500;

const head = { type: 'model-gateway store', form: 1 };

/** Lines of JSON: the head, each entry, and their number, by which a file that was cut off is told from a whole one. */
export async function* dumpLines(pages: AsyncIterable<readonly DumpEntry[]>): AsyncGenerator<string> {
  yield `${JSON.stringify(head)}\n`;
  let count = 0;
  for await (const entries of pages) {
    count += entries.length;
    if (entries.length > 0) yield `${entries.map((entry) => JSON.stringify(entry)).join('\n')}\n`;
  }
  yield `${JSON.stringify({ type: 'end', entries: count })}\n`;
}

/**
 * Reads what `dumpLines` has written into a store.
 * @returns how many entries there were
 * @throws Error that says what is wrong; the store holds nothing of it then
 */
export async function readDump(input: Readable, target: DumpTarget): Promise<number> {
  let count = 0;
  let number = 0;
  let isWhole = false;
  let entries: DumpEntry[] = [];
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      number += 1;
      const value = parsed(line);
      if (isWhole) throw new Error(`line ${number} is behind the end`);
      if (number === 1) {
        if (memberOf(value, 'type') === head.type && memberOf(value, 'form') === head.form) continue;
        throw new Error('this is no export of a store, or one of a later version');
      }
      if (memberOf(value, 'type') === 'end') {
        if (memberOf(value, 'entries') !== count)
          throw new Error(`entries are missing before line ${number}`);
        isWhole = true;
        continue;
      }
      if (!isEntry(value)) throw new Error(`line ${number} is no entry of a store`);
      count += 1;
      entries.push(value);
      if (entries.length < entriesAtOnce) continue;
      await target.write(entries);
      entries = [];
    }
    if (!isWhole) throw new Error('the export has no end: it was cut off');
    if (entries.length > 0) await target.write(entries);
    await target.finish();
  } catch (error) {
    await target.discard();
    throw error;
  }
  return count;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

const members: Readonly<
  Record<DumpEntry['type'], readonly (readonly [name: string, is: (value: unknown) => boolean])[]>
> = {
  record: [
    ['collection', isName],
    ['id', isText],
    ['value', isText],
    ['revision', isNatural],
    ['expiresAt', isNatural],
  ],
  owned: [
    ['owner', isDigest],
    ['id', (value) => value === null || isText(value)],
    ['idHash', (value) => value === null || isDigest(value)],
    ['value', isText],
    ['bytes', isNatural],
    ['expiresAt', isNatural],
  ],
  ledger: [
    ['ledger', isName],
    ['lineTtlMs', isNatural],
  ],
  line: [
    ['ledger', isName],
    ['at', isNatural],
    ['value', isText],
  ],
  call: [
    ['at', isNatural],
    ['values', isObject],
  ],
  sum: [
    ['ledger', isName],
    ['id', isText],
    ['values', areNumbers],
    ['expiresAt', isNatural],
  ],
};

function isEntry(value: unknown): value is DumpEntry {
  const type = memberOf(value, 'type');
  const [, wanted] = Object.entries(members).find(([name]) => name === type) ?? [];
  if (wanted === undefined || !wanted.every(([name, is]) => is(memberOf(value, name)))) return false;
  return type !== 'owned' || (memberOf(value, 'id') === null) !== (memberOf(value, 'idHash') === null);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isWholeNumber(value: unknown): boolean {
  return Number.isSafeInteger(value);
}

/** Of a collection or a ledger: see `Store`. */
function isName(value: unknown): boolean {
  return typeof value === 'string' && /^[a-z0-9-]{1,100}$/.test(value);
}

/** A time, or a count: no whole number below zero. */
function isNatural(value: unknown): boolean {
  return isWholeNumber(value) && Number(value) >= 0;
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

function areNumbers(value: unknown): boolean {
  return isObject(value) && Object.values(value).every(isWholeNumber);
}
