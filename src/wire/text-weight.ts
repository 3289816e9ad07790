/*
 * How much of a language model's tokens a text is, in quarters of one: a character is about that, and one of the scripts
 * of East Asia about a whole one, of which UTF-8 has the first byte 0xe3 to 0xed (U+3000 to U+D7FF) or 0xef (U+F000 to
 * U+FFFF).
 */

const wide = 4;
const firstWide = 0x3000;
const firstSurrogate = 0xd800;
const firstCompatible = 0xf000;

/** @returns quarters of a token that a text is taken for */
export function textWeight(text: string): number {
  let weight = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= firstWide && (unit < firstSurrogate || unit >= firstCompatible)) weight += wide - 1;
  }
  return weight;
}

const BACKSLASH = 0x5c;

/** The same for the text that a raw text stands for; see `raw-text.ts`. */
export function rawTextWeight(raw: string): number {
  let weight = 0;
  for (let at = 0; at < raw.length; at++) {
    const byte = raw.charCodeAt(at);
    if (byte === BACKSLASH) at++;
    // A character begins with any byte of UTF-8 but a continuation, and one of four bytes is a pair of surrogates.
    if (byte < 0x80) weight++;
    else if (byte >= 0xf0) weight += 2;
    else if (byte >= 0xe3 && byte !== 0xee) weight += wide;
    else if (byte >= 0xc0) weight++;
  }
  return weight;
}
