import { createHash, randomInt } from 'node:crypto';

/** A record in LMDB. */
export interface HeldRecord {
  readonly id: string;
  readonly value: string;
  readonly revision: number;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

/** LMDB accepts keys of at most 1,978 bytes. Longer names than this are replaced with their hash. */
export const longestName = 500;
const plain = 1;
const hashed = 2;

/** Returns the key of a text: the text itself, or the hash of a long one. */
export function nameKey(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length <= longestName) return Buffer.concat([Buffer.from([plain]), bytes]);
  return hashedName(createHash('sha256').update(bytes).digest());
}

/** Returns the key of an id of which only the SHA-256 is known. */
export function hashedName(digest: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([hashed]), digest]);
}

/** @returns the text of a key, or null if the key is a hash */
export function plainName(name: Buffer): string | null {
  return name[0] === plain ? name.toString('utf8', 1) : null;
}

/** Returns the prefix of all keys of a collection. */
export function collectionKey(collection: string): Buffer {
  return Buffer.from(`${collection}\0`);
}

/** Returns the key of a record: its collection, then `nameKey` of its id. */
export function recordKey(collection: string, name: Buffer): Buffer {
  return Buffer.concat([collectionKey(collection), name]);
}

/** Encodes a time so that bytes sort like times: a positive double in big-endian order. */
export function timeBytes(time: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(time);
  return bytes;
}

/**
 * Returns a key in the index of expiry: collection, time, name. Without a name it sorts before all that expire then.
 */
export function expiryKey(collection: string, expiresAt: number, name: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([collectionKey(collection), timeBytes(expiresAt), name]);
}

/** Parses a key of the index of expiry. */
export function readExpiryKey(key: Buffer): { collection: string; expiresAt: number; name: Buffer } {
  const end = key.indexOf(0);
  return {
    collection: key.toString('utf8', 0, end),
    expiresAt: key.readDoubleBE(end + 1),
    name: key.subarray(end + 9),
  };
}

const idLengthAt = 16;
const idAt = 20;

/** Encodes a record: two doubles (expiry, revision), the length of the id in four bytes, the id, the value. */
export function writeRecord(record: HeldRecord): Buffer {
  const idLength = Buffer.byteLength(record.id);
  const bytes = Buffer.allocUnsafe(idAt + idLength + Buffer.byteLength(record.value));
  bytes.writeDoubleBE(record.expiresAt, 0);
  bytes.writeDoubleBE(record.revision, 8);
  bytes.writeUInt32BE(idLength, idLengthAt);
  bytes.write(record.id, idAt);
  bytes.write(record.value, idAt + idLength);
  return bytes;
}

/** @param end of the record, if it is in a larger memory whose own length a method of the buffer might use */
export function readRecord(bytes: Buffer, end: number = bytes.length): HeldRecord {
  const valueAt = idAt + bytes.readUInt32BE(idLengthAt);
  return {
    expiresAt: bytes.readDoubleBE(0),
    revision: bytes.readDoubleBE(8),
    id: bytes.toString('utf8', idAt, valueAt),
    value: bytes.toString('utf8', valueAt, end),
  };
}

/** Far below the largest safe integer, even after many changes. */
const highestFirst = 2 ** 47;

/** Returns the first revision of a record. */
export function firstRevision(): number {
  return randomInt(1, highestFirst);
}

/** Returns when something expires that has to last for this long from `now` on, in whole milliseconds. */
export function expiryOf(ttlMs: number, now: number): number {
  return Math.ceil(now + Math.max(1, ttlMs));
}
