import { BACKSLASH, SPACE } from './bytes.js';
import { isSpace } from './json-skip.js';

/** Number of bytes that are checked to recognize text. */
export const textWithin = 512;

/** Whether bytes may be text or its start: there is no control character among the first bytes. */
export function looksLikeText(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, textWithin);
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] as number;
    if (byte === 0x7f || (byte < 0x20 && !isSpace(byte))) return false;
  }
  return length > 0;
}

/**
 * Constants for each byte of a word. After adding `oneEach`, the highest bit is set for bytes above `~`; after
 * subtracting `blankEach`, for bytes below the blank.
 */
const oneEach = 0x01010101;
const blankEach = 0x20202020;
const highestEach = 0x80808080;
/** Bytes of four words, which are processed per iteration. This takes half the time of one word per iteration. */
const turnBytes = 16;

/** Buffer to which bytes are copied in order to process them as aligned words. */
const block = new Uint8Array(16 * 1024);
const words = new Int32Array(block.buffer);

/**
 * Whether all bytes are ASCII characters from the blank to `~`, and none is a backslash. In such a JSON text, all
 * characters of strings stand for themselves (RFC 8259 section 7).
 */
export function isPlainAscii(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += block.length) {
    const isAll = bytes.length <= block.length;
    if (!isPlainBlock(isAll ? bytes : bytes.subarray(at, at + block.length))) return false;
  }
  return !bytes.includes(BACKSLASH);
}

/** The same, but allows the backslash. @param bytes at most as many as the block has room for */
function isPlainBlock(bytes: Buffer): boolean {
  const { length } = bytes;
  block.set(bytes);
  const end = Math.ceil(length / turnBytes) * turnBytes;
  for (let at = length; at < end; at++) block[at] = SPACE;
  const count = end >> 2;
  let found = 0;
  for (let i = 0; i < count; i += 4) {
    const first = words[i] as number;
    const second = words[i + 1] as number;
    const third = words[i + 2] as number;
    const fourth = words[i + 3] as number;
    found |= (first + oneEach) | (first - blankEach) | (second + oneEach) | (second - blankEach);
    found |= (third + oneEach) | (third - blankEach) | (fourth + oneEach) | (fourth - blankEach);
  }
  return (found & highestEach) === 0;
}
