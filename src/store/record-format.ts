import { createHash } from 'node:crypto';

/** A record as LMDB holds it. */
export interface HeldRecord {
  readonly id: string;
  readonly value: string;
  readonly revision: number;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

/** LMDB takes keys of 1,978 bytes at most; what is longer than this stands under its hash. */
export const longestName = 500;
const plain = 1;
const hashed = 2;

/** A key of any text: the text itself, or the hash of a long one. */
export function nameKey(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length <= longestName) return Buffer.concat([Buffer.from([plain]), bytes]);
  return hashedName(createHash('sha256').update(bytes).digest());
}

/** The key of an id of which only the SHA-256 is known. */
export function hashedName(digest: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([hashed]), digest]);
}

/** @returns the text that a key is of, or null where it has only its hash */
export function plainName(name: Buffer): string | null {
  return name[0] === plain ? name.toString('utf8', 1) : null;
}

/** What every key of a collection begins with. */
export function collectionKey(collection: string): Buffer {
  return Buffer.from(`${collection}\0`);
}

/** Key of a record: its collection, then `nameKey` of its id. */
export function recordKey(collection: string, name: Buffer): Buffer {
  return Buffer.concat([collectionKey(collection), name]);
}

/** Bytes of a time that sort as the times do: a positive double in big-endian order. */
export function timeBytes(time: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(time);
  return bytes;
}

/** Key in the index of expiry: collection, time, name. Without a name it stands before all that expire then. */
export function expiryKey(collection: string, expiresAt: number, name: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([collectionKey(collection), timeBytes(expiresAt), name]);
}

/** Reads a key of the index of expiry. */
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

/** Two doubles (expiry, revision), the length of the id in four bytes, the id, the value. */
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

export function readRecord(bytes: Buffer): HeldRecord {
  const valueAt = idAt + bytes.readUInt32BE(idLengthAt);
  return {
    expiresAt: bytes.readDoubleBE(0),
    revision: bytes.readDoubleBE(8),
    id: bytes.toString('utf8', idAt, valueAt),
    value: bytes.toString('utf8', valueAt),
  };
}
