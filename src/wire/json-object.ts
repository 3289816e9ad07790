import { afterColon } from './json-skip.js';

const OPEN = 0x7b;

/**
 * Where the object behind the quoted key that stands at `keyAt` begins, or -1 when its value is no object.
 * @param keyLength length of the key with its quotes
 */
export function objectAfterKey(bytes: Buffer, keyAt: number, keyLength: number): number {
  const value = afterColon(bytes, keyAt + keyLength - 1);
  return value !== -1 && bytes[value] === OPEN ? value : -1;
}

/** So much of an end is searched by a loop: a call into native code and its set-up cost more than that. */
const nearBytes = 2048;

/** Where `key` begins for the last time in `bytes[0, before)`, or -1. It starts and ends with different bytes each. */
function lastKeyAt(bytes: Buffer, key: Buffer, before: number): number {
  const length = key.length;
  const first = key[0];
  const final = key[length - 1];
  const near = Math.max(0, before - nearBytes);
  next: for (let at = before - length; at >= near; at--) {
    if (bytes[at] !== first || bytes[at + length - 1] !== final) continue;
    for (let i = 1; i < length - 1; i++) if (bytes[at + i] !== key[i]) continue next;
    return at;
  }
  return near === 0 ? -1 : bytes.lastIndexOf(key, near);
}

/**
 * Where the value of the last `key` (with its quotes) begins that is an object, or -1. Whether the object closes is
 * for its reader to find out.
 */
export function lastObjectStart(bytes: Buffer, key: Buffer): number {
  for (let at = lastKeyAt(bytes, key, bytes.length); at !== -1; at = lastKeyAt(bytes, key, at)) {
    const start = objectAfterKey(bytes, at, key.length);
    if (start !== -1) return start;
  }
  return -1;
}
