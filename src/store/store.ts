/** A record and the number that changes with each of its changes. */
export interface StoredRecord {
  readonly value: string;
  /** A whole number. The first one is drawn by lot, so that a record made anew never has that of an older one. */
  readonly revision: number;
}

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
 * processes of a host (`embedded`) or by hosts (`redis`). A promise that resolves means that the change is durable as
 * far as the store can be; every one of them rejects with a `GatewayError` of kind `store_unavailable` when the store
 * cannot be reached, and then nobody knows whether the change was made. Names of collections are those of the code:
 * lower-case words and hyphens. Ids, names of claims and values may be any text; whoever makes a value keeps it short
 * enough to be held in memory many times over.
 */
export interface Store {
  readonly kind: 'embedded' | 'redis';
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
   * @param from `next` of the page before; null for the first one
   */
  list(collection: string, limit: number, from: string | null): Promise<StoredPage>;
  /** @returns true for one caller of all processes and hosts, and false for all others until `ttlMs` have passed */
  claim(name: string, ttlMs: number): Promise<boolean>;
  /** Removes what has expired. Readers do not see it any more, swept or not. */
  sweep(): Promise<void>;
  /** Ends what is under way. May be called again; every other call rejects from then on. */
  close(): Promise<void>;
}
