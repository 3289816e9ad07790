/** A record and the number that changes with each of its changes. */
export interface StoredRecord {
  readonly value: string;
  /** A whole number. The first one is drawn by lot, so that a record made anew never has that of an older one. */
  readonly revision: number;
}

/** Of a list of records by their expiry: the first to go comes first, or the last. */
export type ListOrder = 'first-to-go' | 'last-to-go';

/**
 * One page of a collection, in the order of expiry. What a record's change of expiry moves while somebody turns the
 * pages may come twice. A page may hold fewer records than were asked for, or none: `next` alone tells the end.
 */
export interface StoredPage {
  readonly records: readonly (StoredRecord & { readonly id: string })[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

/**
 * What outlives a process: records in collections, each with a time after which it is gone. Shared by the worker
 * processes of a host (`embedded`) or by hosts (`postgres`). A promise that resolves means that the change is durable as
 * far as the store can be; every one of them rejects with a `GatewayError` of kind `store_unavailable` when the store
 * cannot be reached, and then nobody knows whether the change was made. Names of collections are those of the code:
 * lower-case words and hyphens. Ids, names of claims and values may be any text; whoever makes a value keeps it short
 * enough to be held in memory many times over.
 */
export interface Store {
  readonly kind: 'embedded' | 'postgres';
  get(collection: string, id: string): Promise<StoredRecord | null>;
  /** @returns false when there is one already, which stays as it is */
  create(collection: string, id: string, value: string, ttlMs: number): Promise<boolean>;
  /**
   * The record's revision is `revision + 1` then.
   * @returns false when the record is gone, or has another revision by now
   */
  replace(collection: string, id: string, value: string, revision: number, ttlMs: number): Promise<boolean>;
  remove(collection: string, id: string): Promise<void>;
  /**
   * @param limit of records on the page; all of them are held in memory
   * @param from `next` of the page before, which had the same order; null for the first one
   * @param order the first to go unless said otherwise
   */
  list(collection: string, limit: number, from: string | null, order?: ListOrder): Promise<StoredPage>;
  /** @returns true for one caller of all processes and hosts, and false for all others until `ttlMs` have passed */
  claim(name: string, ttlMs: number): Promise<boolean>;
  /** Removes what has expired, of ledgers too. Readers do not see it any more, swept or not. */
  sweep(): Promise<void>;
  /** Ends what is under way. May be called again; every other call rejects from then on. */
  close(): Promise<void>;
}

/** A line of a ledger. */
export interface LedgerLine {
  /** Unix milliseconds, whole: its place in the order of the lines. */
  readonly at: number;
  readonly value: string;
}

/** What a batch adds to the numbers of sums: a row for each sum, and a column for each name. */
export interface LedgerSums {
  /** The sums last at least so long from now on. */
  readonly ttlMs: number;
  /** Of the columns, each once. */
  readonly names: readonly string[];
  /** Of the rows, each once: any text of at most 500 bytes. */
  readonly ids: readonly string[];
  /**
   * Whole numbers, one row after the other. A number that the sum does not have yet begins with zero, and zero adds
   * nothing. One array in place of an object for each sum: there may be thousands, and they pass on to a thread.
   */
  readonly values: Float64Array;
}

/** Calls of one day (UTC) as rows of a table of calls, in the columns that its store has for them. */
export interface CallRows {
  /** Unix milliseconds, whole: when one of them ended. */
  readonly at: number;
  /** Whole rows in the text format of `COPY`, each with its line end. */
  readonly text: Uint8Array;
}

/** Lines and what they add to sums: all of it is taken or nothing. */
export interface LedgerBatch {
  /** Whoever appends, by a name that nobody else has or had. */
  readonly writer: string;
  /**
   * A whole number above that of the writer's batch before. A batch whose number is not above the last one that was
   * taken from its writer is ignored, so that one whose fate is not known can be sent again.
   */
  readonly number: number;
  readonly lines: readonly LedgerLine[];
  /** Calls beside the lines, for a ledger that has `calls`; kept as long as these. */
  readonly calls?: readonly CallRows[];
  /** How long lines are kept, counted from their own time: it holds for all lines of the ledger from now on. */
  readonly lineTtlMs: number;
  readonly sums: LedgerSums;
}

/** One page of lines by their time. Those of the same millisecond have an order of their own, which is always the same. */
export interface LinePage {
  readonly lines: readonly LedgerLine[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

/** A row of a table of calls: its time in Unix milliseconds, and what is in its other columns as the driver reads it. */
export interface StoredCall {
  readonly at: number;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Of which calls: null for those without a key or a model, without the property all. */
export interface CallFilter {
  readonly keyId?: string | null;
  readonly model?: string | null;
}

/** Calls that a store has one by one. Promises reject as those of `Store` do. */
export interface StoredCalls {
  /**
   * Calls in the order of their time, as `Ledger.readLines` reads lines.
   * @param range Unix milliseconds, `until` excluded
   * @param limit of calls on the page; all of them are held in memory
   */
  read(
    asked: CallFilter & { readonly range: { readonly from: number; readonly until: number } },
    limit: number,
    from: string | null,
  ): Promise<{ readonly calls: readonly StoredCall[]; readonly next: string | null }>;
  /** @returns what there is of requests, by their ids, in no order */
  find(requestIds: readonly string[]): Promise<readonly StoredCall[]>;
}

/** One page of sums by the bytes of their ids. A page may hold fewer than were asked for: `next` alone tells the end. */
export interface SumPage {
  /** A number is never beyond what a double counts one by one: there it stops. */
  readonly sums: readonly { readonly id: string; readonly values: Readonly<Record<string, number>> }[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

/**
 * Append-only ledgers beside the records, each with its lines and its sums. Names of ledgers are those of the code:
 * lower-case words and hyphens. Promises reject as those of `Store` do.
 */
export interface Ledger {
  /** Null where calls are packed into lines. Others have lines, too, of versions before that did so. */
  readonly calls: StoredCalls | null;
  /**
   * Lines and sums agree at any moment, and after a crash. Writers are remembered for a week after their last batch.
   * @param tries of the batch that were in vain: it may only have been too much for the time it had
   * @returns false when the batch was ignored, because it had been taken before
   * @throws RangeError when a number is not whole or an id is too long
   */
  append(ledger: string, batch: LedgerBatch, tries?: number): Promise<boolean>;
  /**
   * Lines in the order of their time. One that is appended late, behind the place that a reader has reached, is missed.
   * @param range Unix milliseconds, `until` excluded
   * @param limit of lines on the page; all of them are held in memory
   * @param from `next` of the page before; null for the first one
   */
  readLines(
    ledger: string,
    range: { readonly from: number; readonly until: number },
    limit: number,
    from: string | null,
  ): Promise<LinePage>;
  /**
   * @param range of ids by their bytes, `until` excluded; null for all from there on
   * @param limit of sums on the page; all of them are held in memory
   * @param from `next` of the page before; null for the first one
   */
  readSums(
    ledger: string,
    range: { readonly from: string; readonly until: string | null },
    limit: number,
    from: string | null,
  ): Promise<SumPage>;
}
