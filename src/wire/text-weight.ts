import { BACKSLASH } from './bytes.js';

/*
 * Estimates a text's tokens for language models, in quarters of a token. A character is about a quarter, and one of the
 * East Asian scripts about a whole token. In UTF-8, the first byte of these is 0xe3 to 0xed (U+3000 to U+D7FF) or 0xef
 * (U+F000 to U+FFFF).
 */

const wide = 4;
const firstWide = 0x3000;
const firstSurrogate = 0xd800;
const firstCompatible = 0xf000;

/** @returns the estimated tokens of a text, in quarters of a token */
export function textWeight(text: string): number {
  let weight = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= firstWide && (unit < firstSurrogate || unit >= firstCompatible)) weight += wide - 1;
  }
  return weight;
}

/** The same for a raw text; see `raw-text.ts`. */
export function rawTextWeight(raw: string): number {
  let weight = 0;
  for (let at = 0; at < raw.length; at++) {
    const byte = raw.charCodeAt(at);
    if (byte === BACKSLASH) at++;
    // Every byte of UTF-8 except a continuation byte begins a character. One of four bytes is a surrogate pair.
    if (byte < 0x80) weight++;
    else if (byte >= 0xf0) weight += 2;
    else if (byte >= 0xe3 && byte !== 0xee) weight += wide;
    else if (byte >= 0xc0) weight++;
  }
  return weight;
}
