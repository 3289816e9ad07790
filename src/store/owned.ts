/** A record under its owner's name for it. */
export interface OwnedRecord {
  readonly id: string;
  readonly value: string;
}

/** What records may take up, in bytes: see `countedBytes` for what is counted. */
export interface OwnedBounds {
  readonly owner: number;
  /** Of all owners together. */
  readonly all: number;
}

/** What is found of ids, of an owner's own and of others'. */
export interface FoundOwned {
  /** Of the owner's records, in the order asked for; null for each that is gone. */
  readonly values: readonly (string | null)[];
  /**
   * Those of the ids under which another owner has a record and this one has none; of records that were kept by a version
   * that does not tell, none.
   */
  readonly ofOthers: readonly string[];
}

/**
 * Records that belong to an owner, who may keep so many bytes: the oldest give way to new ones. For all processes that
 * share the store. Owners and ids may be any text. Promises reject as those of `Store` do.
 */
export interface OwnedRecords {
  /**
   * Keeps all of the records or none. Once it resolves, every process finds them. An id that is there already is
   * written anew. The oldest of the owner go until `most.owner` holds, and then anybody's oldest until `most.all`
   * does; whatever the records of one call are, they do not displace each other.
   * @returns false when nothing was kept, because the records alone are more than the bounds allow
   */
  keep(owner: string, records: readonly OwnedRecord[], ttlMs: number, most: OwnedBounds): Promise<boolean>;
  /**
   * @param mostBytes of all values together, which are in memory at once
   * @returns null where what is found is larger
   */
  find(owner: string, ids: readonly string[], mostBytes: number): Promise<FoundOwned | null>;
  /**
   * Records that have less than half of `ttlMs` left live as long as if they had just been kept, and give way as late. What
   * is gone stays so. Asked for before a `keep`, it is done before it.
   */
  renew(owner: string, ids: readonly string[], ttlMs: number): Promise<void>;
  /** @returns false when there was none */
  drop(owner: string, id: string): Promise<boolean>;
}

/** What a record takes up beside its value and its id: keys in its indexes. */
const overheadBytes = 256;

/** @param valueBytes of its value in UTF-8 */
export function countedBytes(id: string, valueBytes: number): number {
  return overheadBytes + Buffer.byteLength(id) + valueBytes;
}
