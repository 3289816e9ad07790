import { GatewayError } from '../errors.js';
import type { BudgetAccounts } from './accounts.js';
import type { OwnedRecords } from './owned.js';

/** A record, and the number that changes with each of its changes. */
export interface StoredRecord {
  readonly value: string;
  /**
   * A whole number. The first is random, so that a new record never has the revision of a former one with the same id.
   */
  readonly revision: number;
}

/** Order of a list of records by expiry: the first to expire first, or the last. */
export type ListOrder = 'first-to-go' | 'last-to-go';

export interface ListedRecord extends StoredRecord {
  readonly id: string;
  /**
   * Milliseconds until it expires, by the clock that has set its expiry. The clocks of the hosts of a database may
   * differ.
   */
  readonly leftMs: number;
}

/**
 * One page of a collection in the order of expiry. A record whose expiry changes while the pages are read may appear
 * twice. A page may have fewer records than requested, or none: only `next` tells the end.
 */
export interface StoredPage {
  readonly records: readonly ListedRecord[];
  /** Where the next page begins. Null at the end. */
  readonly next: string | null;
}

/**
 * Data that outlives a process: records in collections, each with an expiry. Shared by the worker processes of a host
 * (`embedded`) or by hosts (`postgres`). When a promise resolves, the change is as durable as the store can make it.
 * All promises reject with a `GatewayError` of kind `store_unavailable` if the store cannot be reached; it is then
 * unknown whether the change was made. Names of collections are constants of the code: lower-case words and hyphens.
 * Ids, names of claims and values may be any text. Callers keep values short enough for many of them to be in memory.
 */
export interface Store {
  readonly kind: 'embedded' | 'postgres';
  get(collection: string, id: string): Promise<StoredRecord | null>;
  /** @returns false if the record exists already; it is left unchanged */
  create(collection: string, id: string, value: string, ttlMs: number): Promise<boolean>;
  /**
   * Replaces a record. Its new revision is `revision + 1`.
   * @returns false if the record is gone or has another revision
   */
  replace(collection: string, id: string, value: string, revision: number, ttlMs: number): Promise<boolean>;
  remove(collection: string, id: string): Promise<void>;
  /**
   * Reads a page of a collection.
   * @param limit maximum number of records on the page, all of which are in memory
   * @param from `next` of the previous page, which had the same order. Null for the first page
   * @param order default: the first to expire first
   */
  list(collection: string, limit: number, from: string | null, order?: ListOrder): Promise<StoredPage>;
  /** @returns true for one caller among all processes and hosts, and false for all others until `ttlMs` have passed */
  claim(name: string, ttlMs: number): Promise<boolean>;
  /** Removes what has expired, including entries of ledgers. Readers never see expired data, whether removed or not. */
  sweep(): Promise<void>;
  /** Ends what is in flight. May be called again. All other calls reject from then on. */
  close(): Promise<void>;
}

/** A line of a ledger. */
export interface LedgerLine {
  /** Whole Unix milliseconds. Lines are in this order. */
  readonly at: number;
  readonly value: string;
}

/** A line to append. */
export interface NewLedgerLine {
  /** Whole Unix milliseconds. */
  readonly at: number;
  /** Text, or its bytes in UTF-8: many lines wait for the disk, and bytes are not in V8's heap meanwhile. */
  readonly value: string | Uint8Array;
}

/** Amounts that a batch adds to sums: a table with a row for each sum and a column for each name. */
export interface LedgerSums {
  /** How long the sums are kept at least, from now on. */
  readonly ttlMs: number;
  /** Names of the columns, without duplicates. */
  readonly names: readonly string[];
  /** Ids of the rows, without duplicates. Any text of at most 500 bytes. */
  readonly ids: readonly string[];
  /**
   * Whole numbers, row by row. A number that the sum does not have yet starts at zero, and adding zero has no effect. A
   * single array rather than an object per sum, since there may be thousands, and they are transferred to a thread.
   */
  readonly values: Float64Array;
}

/** Calls of one day (UTC) as rows of the table of calls, in the columns that the store has for them. */
export interface CallRows {
  /** When one of them ended, in whole Unix milliseconds. */
  readonly at: number;
  /** Whole rows in the text format of `COPY`, each with its line end. */
  readonly text: Uint8Array;
}

/** Lines, and what they add to sums. A batch is stored as a whole or not at all. */
export interface LedgerBatch {
  /** Name of the writer, unique among all writers at all times. */
  readonly writer: string;
  /**
   * A whole number above that of the writer's previous batch. The store ignores a batch whose number is not above that
   * of the writer's last stored batch. So a batch can be sent again if it is unknown whether it was stored.
   */
  readonly number: number;
  readonly lines: readonly NewLedgerLine[];
  /** Calls in addition to the lines, for a ledger that has `calls`. Kept as long as the lines. */
  readonly calls?: readonly CallRows[];
  /** How long lines are kept, counted from their own time. Applies to all lines of the ledger from now on. */
  readonly lineTtlMs: number;
  readonly sums: LedgerSums;
}

/** One page of lines by their time. Lines of the same millisecond have a fixed order. */
export interface LinePage {
  readonly lines: readonly LedgerLine[];
  /** Where the next page begins. Null at the end. */
  readonly next: string | null;
}

/** A row of a table of calls: its time in Unix milliseconds, and its other columns as the driver returns them. */
export interface StoredCall {
  readonly at: number;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Which calls to read. Null means those without a key or model; a missing property means all. */
export interface CallFilter {
  readonly keyId?: string | null;
  readonly model?: string | null;
}

/** Calls that a store has as single rows. Promises reject like those of `Store`. */
export interface StoredCalls {
  /**
   * Reads calls in the order of their time, as `Ledger.readLines` reads lines.
   * @param range Unix milliseconds, excluding `until`
   * @param limit maximum number of calls on the page, all of which are in memory
   */
  read(
    asked: CallFilter & { readonly range: { readonly from: number; readonly until: number } },
    limit: number,
    from: string | null,
  ): Promise<{ readonly calls: readonly StoredCall[]; readonly next: string | null }>;
  /** @returns the calls of these requests that exist, in no order */
  find(requestIds: readonly string[]): Promise<readonly StoredCall[]>;
}

/**
 * One page of sums, ordered by the bytes of their ids. A page may have fewer sums than requested: only `next` tells the
 * end.
 */
export interface SumPage {
  /** Numbers are limited to the range of safe integers. */
  readonly sums: readonly { readonly id: string; readonly values: Readonly<Record<string, number>> }[];
  /** Where the next page begins. Null at the end. */
  readonly next: string | null;
}

/**
 * Append-only ledgers beside the records, each with lines and sums. Names of ledgers are constants of the code:
 * lower-case words and hyphens. Promises reject like those of `Store`.
 */
export interface Ledger {
  /** Null if calls are packed into lines. Stores with a table of calls have lines too, of versions before the table. */
  readonly calls: StoredCalls | null;
  /**
   * Adds a batch. Lines and sums are consistent at any moment, and after a crash. A writer is remembered for a week
   * after its last batch.
   * @param batch may be changed by the caller once the promise is settled
   * @param tries how many tries of this batch have failed. It may have been too large for the time that it had
   * @returns false if the batch was ignored, since it was stored already
   * @throws RangeError if a number is not whole or an id is too long
   */
  append(ledger: string, batch: LedgerBatch, tries?: number): Promise<boolean>;
  /**
   * Reads lines in the order of their time. A reader misses lines that are added later, before the position that it has
   * reached.
   * @param range Unix milliseconds, excluding `until`
   * @param limit maximum number of lines on the page, all of which are in memory
   * @param from `next` of the previous page. Null for the first page
   */
  readLines(
    ledger: string,
    range: { readonly from: number; readonly until: number },
    limit: number,
    from: string | null,
  ): Promise<LinePage>;
  /**
   * Reads sums.
   * @param range of ids by their bytes, excluding `until`. Null for no upper bound
   * @param limit maximum number of sums on the page, all of which are in memory
   * @param from `next` of the previous page. Null for the first page
   */
  readSums(
    ledger: string,
    range: { readonly from: string; readonly until: string | null },
    limit: number,
    from: string | null,
  ): Promise<SumPage>;
}

/** A store with its ledgers, the records of owners, and what only a store of several hosts has. */
export interface WholeStore extends Store, Ledger {
  readonly owned: OwnedRecords;
  readonly accounts: BudgetAccounts;
  /** Null if changes can only be found by polling. */
  readonly changes: ChangeFeed | null;
  /**
   * @returns a sentence for each setting by which a crash may lose what was confirmed as stored, without a full stop
   */
  risks(): Promise<readonly string[]>;
  /** @returns bytes of the disk that the store takes; null for an embedded one before it is created */
  size(): Promise<number | null>;
  /**
   * Waits until the store can be used. That may take long, since tables of an earlier version are first brought up to
   * date. Never rejects.
   * @param onUpdate called when that begins
   * @returns why it cannot be used until somebody changes it or the config. Null if it can be, or cannot be reached
   */
  refusal(onUpdate: () => void): Promise<string | null>;
}

/**
 * Notifies immediately of changes by other processes and hosts, but may miss some. A listener that needs all of them
 * has to poll as well.
 */
export interface ChangeFeed {
  /**
   * Begins to listen.
   * @param onChange called with the collection of each change, and with null if some may have been missed
   * @returns a function that stops listening
   */
  listen(onChange: (collection: string | null) => void): () => void;
  close(): Promise<void>;
}

/** Makes the error with which all calls of a store reject. The cause is for the log. */
export function storeUnavailable(cause: unknown): GatewayError {
  return new GatewayError('store_unavailable', null, { retryAfter: 1, cause });
}

/** @returns the error with which calls of a closed store reject */
export function storeClosed(): GatewayError {
  return storeUnavailable(new Error('the store is closed'));
}

/**
 * Returns the back-off before an attempt, in milliseconds. It grows with each attempt, with a random part so that
 * processes differ.
 * @param firstMs and `longestMs`: by default those of connections
 */
export function backOffBefore(attempt: number, firstMs = 50, longestMs = 2000): number {
  const longest = Math.min(firstMs * 2 ** Math.min(attempt, 16), longestMs);
  return Math.round(longest * (0.5 + Math.random() / 2));
}

/** Concurrent changes of a record collide. More collisions in a row than this mean that something is wrong. */
const mostTries = 30;
const longestPauseMs = 20;

/** A record, and how long it is kept after a change. */
interface RecordPlace {
  readonly collection: string;
  readonly id: string;
  readonly ttlMs: number;
}

/**
 * Changes a record that other processes may change concurrently. Reads it, and writes the new value if the record has
 * not changed since. Otherwise retries after a random pause.
 * @param change makes the new value from the current one, or from null if there is none. Returns null to leave the
 * record unchanged. May be called several times
 * @returns false if other processes were first in all tries
 * @throws what the store throws
 */
export async function changeRecord(
  store: Pick<Store, 'get' | 'create' | 'replace'>,
  { collection, id, ttlMs }: RecordPlace,
  change: (value: string | null) => string | null,
): Promise<boolean> {
  for (let tries = 0; tries < mostTries; tries++) {
    const record = await store.get(collection, id);
    const value = change(record?.value ?? null);
    if (value === null) return true;
    const isDone =
      record === null
        ? await store.create(collection, id, value, ttlMs)
        : await store.replace(collection, id, value, record.revision, ttlMs);
    if (isDone) return true;
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(tries, longestPauseMs)));
  }
  return false;
}
