/** A record under its owner's name for it. */
interface OwnedRecord {
  readonly id: string;
  readonly value: string;
}

/** Bounds on the size of records, in bytes as counted by `countedBytes`. */
interface OwnedBounds {
  readonly owner: number;
  /** Of all owners together. */
  readonly all: number;
}

/** Result of looking up ids, among the records of an owner and of other owners. */
export interface FoundOwned {
  /** Values of the owner's records, in the order of the ids. Null for each that is gone. */
  readonly values: readonly (string | null)[];
  /**
   * The ids under which another owner has a record and this owner does not. Records of versions without an index by
   * name are not included.
   */
  readonly ofOthers: readonly string[];
}

/**
 * Records that belong to an owner. An owner may keep a limited number of bytes: new records displace the oldest. Shared
 * by all processes that share the store. Owners and ids may be any text. Promises reject like those of `Store`.
 */
export interface OwnedRecords {
  /**
   * Keeps all of the records or none. When the promise resolves, every process finds them. A record with an existing id
   * replaces the former one. The oldest records of the owner are removed until `most.owner` holds, and then the oldest
   * of all owners until `most.all` holds. The records of one call never displace each other.
   * @returns false if nothing was kept, since the records alone exceed the bounds
   */
  keep(owner: string, records: readonly OwnedRecord[], ttlMs: number, most: OwnedBounds): Promise<boolean>;
  /**
   * Looks up records by their ids.
   * @param mostBytes limit in bytes for all values together, which are in memory at the same time
   * @returns null if the values are larger
   */
  find(owner: string, ids: readonly string[], mostBytes: number): Promise<FoundOwned | null>;
  /**
   * Extends records that have less than half of `ttlMs` left, as if they had just been kept, which also delays their
   * displacement. Records that are gone remain so. If it is called before a `keep`, it is executed before it.
   */
  renew(owner: string, ids: readonly string[], ttlMs: number): Promise<void>;
  /** @returns false if there was no such record */
  drop(owner: string, id: string): Promise<boolean>;
}

/** What a record takes in addition to its value and id: keys in its indexes. */
const overheadBytes = 256;

/**
 * Returns how many bytes a record counts for.
 * @param valueBytes of its value in UTF-8
 */
export function countedBytes(id: string, valueBytes: number): number {
  return overheadBytes + Buffer.byteLength(id) + valueBytes;
}
