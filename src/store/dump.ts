import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { isObject, type JsonObject, parseObject } from '../wire/json.js';

/**
 * Kinds of entries of an export, in the order in which they are written, each with its members. Claims, which last for
 * seconds, are not exported. Times are Unix milliseconds.
 */
const kinds = {
  record: {
    collection: isName,
    id: isText,
    value: isText,
    revision: isNatural,
    expiresAt: isNatural,
  },
  /** A record of an owner. Only the SHA-256 of the owner is known, and of long ids. */
  owned: {
    owner: isDigest,
    id: isTextOrNull,
    /** Null if there is an id. */
    idHash: isDigestOrNull,
    value: isText,
    /** As counted by `countedBytes`. */
    bytes: isNatural,
    expiresAt: isNatural,
  },
  /** How long a ledger keeps its lines. Precedes all other entries of the ledger. */
  ledger: { ledger: isName, lineTtlMs: isNatural },
  line: { ledger: isName, at: isNatural, value: isText },
  /** A row of the table of calls. Calls are in the order of their time. */
  call: { at: isNatural, values: isObject },
  sum: { ledger: isName, id: isText, values: areNumbers, expiresAt: isNatural },
} as const;

type Kinds = typeof kinds;
type Held<Is> = Is extends (value: unknown) => value is infer Value ? Value : never;
export type EntryOf<Kind extends keyof Kinds> = { readonly type: Kind } & {
  readonly [Name in keyof Kinds[Kind]]: Held<Kinds[Kind][Name]>;
};
export type DumpEntry = { [Kind in keyof Kinds]: EntryOf<Kind> }[keyof Kinds];

/** Receives entries in order. Keeps either all of them, at the end, or none. */
export interface DumpTarget {
  write(entries: readonly DumpEntry[]): Promise<void>;
  /** Called when everything was written. Keeps it from now on. */
  finish(): Promise<void>;
  /** Removes everything that was written. */
  discard(): Promise<void>;
}

/** Most entries in memory at a time. */
export const entriesAtOnce = 500;

const head = { type: 'model-gateway store', form: 1 };

/**
 * Writes an export as lines of JSON: the head, each entry, and the number of entries. Without the last, a file is known
 * to be incomplete.
 */
export async function* dumpLines(pages: AsyncIterable<readonly DumpEntry[]>): AsyncGenerator<string> {
  let start = `${JSON.stringify(head)}\n`;
  let count = 0;
  // Nothing is written for a store that cannot be read.
  for await (const entries of pages) {
    if (entries.length === 0) continue;
    count += entries.length;
    yield `${start}${entries.map((entry) => JSON.stringify(entry)).join('\n')}\n`;
    start = '';
  }
  yield `${start}${JSON.stringify({ type: 'end', entries: count })}\n`;
}

/**
 * Reads an export that `dumpLines` has written into a store.
 * @returns the number of entries
 * @throws Error with the reason. The store then holds nothing of the export
 */
export async function readDump(input: Readable, target: DumpTarget): Promise<number> {
  let count = 0;
  let number = 0;
  let isWhole = false;
  let entries: DumpEntry[] = [];
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      number += 1;
      const value = parseObject(line);
      if (isWhole) throw new Error(`line ${number} is behind the end`);
      if (number === 1) {
        if (value?.type === head.type && value.form === head.form) continue;
        throw new Error('this is no export of a store, or one of a later version');
      }
      if (value?.type === 'end') {
        if (value.entries !== count) throw new Error(`entries are missing before line ${number}`);
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

function isEntry(value: JsonObject | null): value is DumpEntry {
  const [, members] = Object.entries(kinds).find(([kind]) => kind === value?.type) ?? [];
  if (value === null || members === undefined) return false;
  const areThere = Object.entries(members).every(([name, is]) => is(value[name]));
  // A record of an owner has either its id or the hash of the id.
  return areThere && (members !== kinds.owned || (value.id === null) !== (value.idHash === null));
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || isText(value);
}

/** Name of a collection or a ledger: see `Store`. */
function isName(value: unknown): value is string {
  return isText(value) && /^[a-z0-9-]{1,100}$/.test(value);
}

/** A time or a count: a whole number of at least zero. */
function isNatural(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** A SHA-256 in hexadecimal. */
function isDigest(value: unknown): value is string {
  return isText(value) && /^[0-9a-f]{64}$/.test(value);
}

function isDigestOrNull(value: unknown): value is string | null {
  return value === null || isDigest(value);
}

function areNumbers(value: unknown): value is Readonly<Record<string, number>> {
  return isObject(value) && Object.values(value).every(Number.isSafeInteger);
}
