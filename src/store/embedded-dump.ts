import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type DumpEntry, type DumpTarget, type EntryOf, entriesAtOnce } from './dump.js';
import { type EmbeddedBase, openBase, openLasting } from './embedded-base.js';
import { makeAside, makeFolder } from './folder.js';
import { lineTime, writeCallLine } from './ledger-format.js';
import { mergeSums, putLine, putRetention, putSum, readSumRecord, retentions, sumsOf } from './ledgers.js';
import { type HeldOwned, heldOwned, putOwned } from './owned-records.js';
import { callLedger } from './postgres-call-tables.js';
import {
  collectionKey,
  type HeldRecord,
  hashedName,
  nameKey,
  plainName,
  readRecord,
} from './record-format.js';
import { type Bytes, putRecord } from './records.js';
import type { StoredCall } from './store.js';

/** Entries that an embedded store keeps. Calls become lines. */
type KeptEntry = Exclude<DumpEntry, EntryOf<'call'>>;

/** Readers of lines begin at least this much before a time, to find calls that ended at it: see `tableSpanMs`. */
const lineSpanMs = 1000;

/**
 * Reads an embedded store in pages. Gateways may use it meanwhile.
 * @param path of the store's folder
 * @throws Error if there is no store
 */
export async function* readEmbedded(path: string): AsyncGenerator<readonly DumpEntry[]> {
  refuseNone(path);
  const { open } = await import('lmdb');
  const base = openBase(open, path);
  try {
    const now = Date.now();
    yield* pagesOf(base.records.records, null, (key, value) => recordEntry(key, readRecord(value), now));
    if (base.hasOwned())
      yield* pagesOf(base.owned().values, null, (key, value) => ownedEntry(heldOwned(key, value), now));
    if (base.hasLedgers()) yield* ledgerPages(base, now);
  } finally {
    base.close();
  }
}

function recordEntry(
  key: Buffer,
  { id, value, revision, expiresAt }: HeldRecord,
  now: number,
): DumpEntry | null {
  if (expiresAt <= now) return null;
  return {
    type: 'record',
    collection: key.toString('utf8', 0, key.indexOf(0)),
    id,
    value,
    revision,
    expiresAt,
  };
}

function ownedEntry(
  { owner, name, counted, expiresAt, value }: HeldOwned,
  now: number,
): EntryOf<'owned'> | null {
  if (expiresAt <= now) return null;
  const id = plainName(name);
  const idHash = id === null ? name.subarray(1).toString('hex') : null;
  return {
    type: 'owned',
    owner: owner.toString('hex'),
    id,
    idHash,
    value: value.toString(),
    bytes: counted,
    expiresAt,
  };
}

async function* ledgerPages(base: EmbeddedBase, now: number): AsyncGenerator<readonly DumpEntry[]> {
  const { change, ...ledgers } = base.ledgers();
  for (const { ledger, lineTtlMs } of retentions(ledgers)) {
    mergeSums(ledgers, change, ledger);
    yield [{ type: 'ledger', ledger, lineTtlMs }];
    const kept = now - lineTtlMs;
    yield* pagesOf(ledgers.lines, ledger, (key, value) => {
      const at = lineTime(key);
      return at > kept ? { type: 'line', ledger, at, value: value.toString() } : null;
    });
    yield* pagesOf(ledgers.sums.records, sumsOf(ledger), (_, value) => {
      const { id, expiresAt, values } = readSumRecord(value);
      return expiresAt > now ? { type: 'sum', ledger, id, values, expiresAt } : null;
    });
  }
}

/**
 * Reads entries in the order of their keys. Each page is read at one moment, and nothing is held open between pages.
 * @param collection whose keys to read; null for all
 * @param entryOf returns null for what is left out
 */
async function* pagesOf(
  database: Bytes,
  collection: string | null,
  entryOf: (key: Buffer, value: Buffer) => DumpEntry | null,
): AsyncGenerator<readonly DumpEntry[]> {
  let start = collection === null ? Buffer.from([0]) : collectionKey(collection);
  const end = collection === null ? undefined : Buffer.from(`${collection}\u0001`);
  let last: Buffer | null = null;
  for (;;) {
    database.resetReadTxn();
    const page: DumpEntry[] = [];
    let count = 0;
    for (const { key, value } of database.getRange({ start, end, limit: entriesAtOnce + 1 })) {
      if (last?.equals(key)) continue;
      count += 1;
      start = Buffer.from(key);
      const entry = entryOf(key, value);
      if (entry !== null) page.push(entry);
    }
    if (count === 0) {
      refuseDamaged(database, start, end);
      return;
    }
    last = start;
    yield page;
  }
}

/**
 * LMDB ends a range at a damaged page without an error. From the other end it finds what is behind that page.
 * @param start last key that was read, in the same read transaction, or where the range starts
 * @throws Error if there is a key behind it
 */
function refuseDamaged(database: Bytes, start: Buffer, end: Buffer | undefined): void {
  const range = { reverse: true, start: end, end: start, limit: 1 };
  for (const key of database.getKeys(range))
    if (key.compare(start) > 0)
      throw new Error('a file of the store is damaged (what to do is in the manual, store.md)');
}

/**
 * Creates an embedded store from the entries that are written. It is created beside its folder, or inside if that
 * exists, and moved there when complete.
 * @throws Error if there is a store already
 */
export async function writeEmbedded(path: string): Promise<DumpTarget> {
  const { open } = await import('lmdb');
  const making = makeAside(path, 'import');
  const base = openBase(open, making.path);
  let lines = 0;
  const put = (entry: KeptEntry): void => {
    if (entry.type === 'record') putRecord(base.records, entry.collection, entry);
    else if (entry.type === 'owned') putOwned(base.owned(), heldOf(entry), entry.value);
    else if (entry.type === 'ledger') putRetention(base.ledgers(), entry);
    else if (entry.type === 'sum') putSum(base.ledgers(), entry);
    else {
      putLine(base.ledgers(), entry, lines);
      lines += 1;
    }
  };
  const changeOf = ({ type }: KeptEntry) =>
    type === 'record' ? base.changeRecords : type === 'owned' ? base.owned().change : base.ledgers().change;
  return {
    async write(rows) {
      const entries = withLines(rows);
      for (let from = 0; from < entries.length; ) {
        const [first] = entries.slice(from, from + 1);
        if (first === undefined) return;
        const change = changeOf(first);
        let until = from;
        while (until < entries.length && changeOf(entries[until] ?? first) === change) until += 1;
        change(() => entries.slice(from, until).forEach(put));
        from = until;
      }
    },
    async finish() {
      base.close();
      making.finish();
    },
    async discard() {
      base.close();
      making.discard();
    },
  };
}

/** Packs calls that follow each other within `lineSpanMs` into one line. */
function withLines(entries: readonly DumpEntry[]): readonly KeptEntry[] {
  const all: KeptEntry[] = [];
  let calls: StoredCall[] = [];
  const endLine = (): void => {
    const [first] = calls;
    if (first !== undefined)
      all.push({ type: 'line', ledger: callLedger, at: first.at, value: writeCallLine(calls) });
    calls = [];
  };
  for (const entry of entries) {
    const [first] = calls;
    if (entry.type !== 'call' || (first !== undefined && entry.at - first.at >= lineSpanMs)) endLine();
    if (entry.type === 'call') calls.push({ at: entry.at, values: entry.values });
    else all.push(entry);
  }
  endLine();
  return all;
}

function heldOf({ owner, id, idHash, bytes, expiresAt }: EntryOf<'owned'>) {
  const name = id === null ? hashedName(Buffer.from(idHash ?? '', 'hex')) : nameKey(id);
  return { owner: Buffer.from(owner, 'hex'), name, expiresAt, counted: bytes };
}

/**
 * Copies an embedded store while gateways use it. Each of its databases is copied as of one moment. The copy is made
 * beside its folder, or inside if that exists, and moved there when complete, since a partial copy would be a valid
 * store, too.
 * @param folder must not exist, or must be empty
 * @throws Error if there is nothing to copy, or the folder is not empty
 */
export async function copyEmbedded(path: string, folder: string): Promise<void> {
  // Without a trailing slash, after which the copy would be made inside the folder.
  const to = resolve(folder);
  refuseNone(path);
  const { open } = await import('lmdb');
  const making = makeAside(to, 'backup');
  try {
    for (const { name, environment } of openLasting(open, path)) {
      try {
        makeFolder(join(making.path, name));
        await environment.copy(join(making.path, name));
      } finally {
        environment.close();
      }
    }
    making.finish();
  } catch (error) {
    making.discard();
    throw error;
  }
}

/** @throws Error if there is no store in a folder. Opening one would create it. */
function refuseNone(path: string): void {
  if (!existsSync(join(path, 'records'))) throw new Error(`there is no store in ${path}`);
}
