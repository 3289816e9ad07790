const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const COLON = 0x3a;

/** First byte at or after `from` that is not JSON white space. */
export function skipSpace(bytes: Buffer, from: number): number {
  let i = from;
  while (bytes[i] === 0x20 || bytes[i] === 0x0a || bytes[i] === 0x0d || bytes[i] === 0x09) i++;
  return i;
}

/** Just past the object that opens at `start`, or -1 when it does not close. Strings are skipped over. */
export function objectEnd(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let i = start; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === OPEN) depth++;
    else if (byte === CLOSE && --depth === 0) return i + 1;
  }
  return -1;
}

/**
 * Where the object behind the quoted key that stands at `keyAt` begins, or -1 when its value is no object.
 * @param keyLength length of the key with its quotes
 */
export function objectAfterKey(bytes: Buffer, keyAt: number, keyLength: number): number {
  let i = skipSpace(bytes, keyAt + keyLength);
  if (bytes[i] !== COLON) return -1;
  i = skipSpace(bytes, i + 1);
  return bytes[i] === OPEN ? i : -1;
}

/** Where the value of the last `key` (with its quotes) begins whose value is a whole object, or -1. */
export function lastObjectStart(bytes: Buffer, key: Buffer): number {
  for (let at = bytes.lastIndexOf(key); at !== -1; at = at === 0 ? -1 : bytes.lastIndexOf(key, at - 1)) {
    const start = objectAfterKey(bytes, at, key.length);
    if (start !== -1 && objectEnd(bytes, start) !== -1) return start;
  }
  return -1;
}
