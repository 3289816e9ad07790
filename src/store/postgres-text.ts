import { createHash } from 'node:crypto';
import { longestName } from './record-format.js';

/*
 * A text in PostgreSQL cannot contain NUL, and an index key has a limited length. The functions here work around both
 * limits. Text within the limits is stored as it is.
 */

/** Prefix of hashes. No text in a column begins with it. */
const hashMark = '\u0001sha256:';

/** Encodes a text for a column: U+0000 and U+0001 each become two characters. The order of texts stays the same. */
export function toColumn(text: string): string {
  // The server would refuse half of a surrogate pair.
  const whole = Buffer.from(text).toString();
  if (!whole.includes('\0') && !whole.includes('\u0001')) return whole;
  return whole.replaceAll('\u0001', '\u0001\u0002').replaceAll('\0', '\u0001\u0001');
}

/** Decodes the text of a column. */
export function fromColumn(text: string): string {
  if (!text.includes('\u0001')) return text;
  return text.replaceAll('\u0001\u0001', '\0').replaceAll('\u0001\u0002', '\u0001');
}

/** Returns the index key of an id: the id itself, or the hash of a long id. */
export function toKey(id: string): string {
  return Buffer.byteLength(id) <= longestName
    ? toColumn(id)
    : hashedKey(createHash('sha256').update(id).digest());
}

/** Returns the key of an id of which only the SHA-256 is known. */
export function hashedKey(digest: Uint8Array): string {
  return `${hashMark}${Buffer.from(digest).toString('hex')}`;
}

/** @returns the SHA-256 in a key, or null if the key is an id */
export function digestOf(key: string): Buffer | null {
  return key.startsWith(hashMark) ? Buffer.from(key.slice(hashMark.length), 'hex') : null;
}

/** Returns the column value of an owner, which has the same length for all owners. */
export function ownerColumn(owner: string): string {
  return createHash('sha256').update(owner).digest('hex');
}
