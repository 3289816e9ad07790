import { BACKSLASH, LOWER_U } from './bytes.js';

/** Length of an escape such as `\u00e9`. */
const unitEscape = 6;

/**
 * Counts the code points of a JSON string in UTF-8.
 * @param from offset after its opening quote
 * @param to offset of its closing quote
 */
export function codePoints(bytes: Buffer, from: number, to: number): number {
  let count = 0;
  let at = from;
  while (at < to) {
    const byte = bytes[at] as number;
    if (byte !== BACKSLASH) {
      // All bytes of a character but its first are of this form.
      if ((byte & 0xc0) !== 0x80) count++;
      at++;
    } else {
      count++;
      at += isPair(bytes, at) ? 2 * unitEscape : bytes[at + 1] === LOWER_U ? unitEscape : 2;
    }
  }
  return count;
}

/** Returns whether two escapes at an offset are the halves of one code point. */
function isPair(bytes: Buffer, at: number): boolean {
  return isHalf(bytes, at, highHalf) && isHalf(bytes, at + unitEscape, lowHalf);
}

const highHalf = /^\\u[dD][89abAB]/;
const lowHalf = /^\\u[dD][c-fC-F]/;

function isHalf(bytes: Buffer, at: number, form: RegExp): boolean {
  return bytes[at + 1] === LOWER_U && form.test(bytes.toString('latin1', at, at + unitEscape));
}
