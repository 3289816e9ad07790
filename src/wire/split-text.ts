import { BACKSLASH } from './bytes.js';
import { endOfString } from './json-skip.js';

/** Finds the ends of the strings of a JSON text that arrives in pieces. */
export class SplitText {
  /** A string has begun and not ended. */
  isOpen = false;
  /** The last byte of the open string is a backslash that escapes the next one. */
  isEscaped = false;

  /**
   * @param from offset of the first byte of a string, or of the piece in which the open one continues
   * @returns the offset of its closing quote, or the length of the piece
   */
  endIn(piece: Buffer, from: number): number {
    const start = from + (this.isEscaped ? 1 : 0);
    if (start > piece.length) return piece.length;
    const end = endOfString(piece, start);
    this.isOpen = end === -1;
    let before = this.isOpen ? piece.length : 0;
    while (before > start && piece[before - 1] === BACKSLASH) before--;
    this.isEscaped = this.isOpen && (piece.length - before) % 2 === 1;
    return this.isOpen ? piece.length : end;
  }
}
