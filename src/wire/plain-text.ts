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
/** Bytes of four words, which are looked at in one turn: half of the time of one word a turn. */
const turnBytes = 16;

/** Bytes are copied here to be looked at in words, wherever they lie. */
const block = new Uint8Array(16 * 1024);
const words = new Int32Array(block.buffer);

/**
 * Whether all bytes are signs of ASCII from the blank to `~`, and none a backslash: in JSON each stands for itself (RFC
 * 8259 section 7).
 */
export function isPlainAscii(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += block.length) {
    const isAll = bytes.length <= block.length;
    if (!isPlainBlock(isAll ? bytes : bytes.subarray(at, at + block.length))) return false;
  }
  return !bytes.includes(backslash);
}

/** The same but for the backslash. @param bytes no more than the block has room for */
function isPlainBlock(bytes: Buffer): boolean {
  const { length } = bytes;
  block.set(bytes);
  const end = Math.ceil(length / turnBytes) * turnBytes;
  for (let at = length; at < end; at++) block[at] = blank;
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
