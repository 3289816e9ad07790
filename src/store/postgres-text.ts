import { createHash } from 'node:crypto';
import { longestName } from './record-format.js';

/*
 * A text in PostgreSQL has no NUL, and a key of an index has an end. Both are dealt with here, and whatever needs
 * neither stands in the tables as it is.
 */

/** No text in a column begins with it. */
const hashMark = '\u0001sha256:';

/** A text as a column holds it: NUL and the character behind it become two each, in an order that stays the same. */
export function toColumn(text: string): string {
  // Half of a pair of code units would be refused.
  const whole = Buffer.from(text).toString();
  if (!whole.includes('\0') && !whole.includes('\u0001')) return whole;
  return whole.replaceAll('\u0001', '\u0001\u0002').replaceAll('\0', '\u0001\u0001');
}

/** The text that a column holds. */
export function fromColumn(text: string): string {
  if (!text.includes('\u0001')) return text;
  return text.replaceAll('\u0001\u0001', '\0').replaceAll('\u0001\u0002', '\u0001');
}

/** What an id stands under in an index: itself, or its hash where it is long. */
export function toKey(id: string): string {
  return Buffer.byteLength(id) <= longestName
    ? toColumn(id)
    : hashedKey(createHash('sha256').update(id).digest());
}

/** The key of an id of which only the SHA-256 is known. */
export function hashedKey(digest: Uint8Array): string {
  return `${hashMark}${Buffer.from(digest).toString('hex')}`;
}

/** @returns the SHA-256 that a key stands for, or null for one that is an id */
export function digestOf(key: string): Buffer | null {
  return key.startsWith(hashMark) ? Buffer.from(key.slice(hashMark.length), 'hex') : null;
}

/** Who a record of an owner belongs to: as long for each, whatever the owner's name is. */
export function ownerColumn(owner: string): string {
  return createHash('sha256').update(owner).digest('hex');
}
