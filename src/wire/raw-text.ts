/*
 * Raw text is the inside of a JSON string as it is on the wire: UTF-8 with one character a byte (latin1), and no escapes
 * but those of two characters.
 */

/** @returns the text that a raw text stands for */
export function plainText(raw: string): string {
  const text = Buffer.from(raw, 'latin1').toString('utf8');
  return raw.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}

const BACKSLASH = 0x5c;

/** @returns the length of the text that a raw text stands for, in the characters of JavaScript's strings */
export function plainLength(raw: string): number {
  let length = 0;
  for (let at = 0; at < raw.length; at++) {
    const byte = raw.charCodeAt(at);
    if (byte === BACKSLASH) at++;
    // A character begins with any byte of UTF-8 but a continuation, and one of four bytes is a pair of surrogates.
    if ((byte & 0xc0) !== 0x80) length += byte >= 0xf0 ? 2 : 1;
  }
  return length;
}

/** @returns a text's bytes in UTF-8, one character a byte */
export function rawBytes(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');
}

/** What an encoder puts around raw texts, for as long as nothing else is encoded. */
export interface RawTextFrame {
  readonly before: string;
  /** `after` and `before`, for the place between two texts. */
  readonly between: string;
  readonly after: string;
}

/** A frame from what stands before and after each raw text. */
export function framed(before: string, after: string): RawTextFrame {
  return { before, between: after + before, after };
}
