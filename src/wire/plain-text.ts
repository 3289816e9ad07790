import { isSpace } from './json-skip.js';

/** So many bytes tell a text from anything else. */
export const textWithin = 512;

/** Whether it may be a text, or the beginning of one: no control character is among its first bytes. */
export function looksLikeText(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, textWithin);
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] as number;
    if (byte === 0x7f || (byte < 0x20 && !isSpace(byte))) return false;
  }
  return length > 0;
}

const blank = 0x20;
const backslash = 0x5c;
/** The same for each byte of a word: added, the highest bit is that of a sign behind `~`; taken off, of one before the blank. */
const oneEach = 0x01010101;
const blankEach = 0x20202020;
const highestEach = 0x80808080;

/**
 * Whether all bytes are signs of ASCII from the blank to `~`, and none a backslash: in JSON each stands for itself (RFC
 * 8259 section 7). Four bytes are looked at in one step where they begin at a multiple of four.
 */
export function isPlainAscii(bytes: Buffer): boolean {
  const { length } = bytes;
  let found = 0;
  let at = 0;
  if (bytes.byteOffset % 4 === 0) {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, length >> 2);
    for (let i = 0; i < words.length; i++) {
      const word = words[i] as number;
      found |= (word + oneEach) | (word - blankEach);
    }
    at = words.length * 4;
  }
  for (; at < length; at++) {
    const byte = bytes[at] as number;
    found |= (byte + 1) | (byte - blank);
  }
  return (found & highestEach) === 0 && !bytes.includes(backslash);
}
