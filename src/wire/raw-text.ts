/*
 * Raw text is the content of a JSON string on the wire: UTF-8 with one character per byte (Latin-1), and only
 * two-character escapes.
 */

/** @returns the decoded text */
export function plainText(raw: string): string {
  const text = Buffer.from(raw, 'latin1').toString('utf8');
  return raw.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}

/** @returns a text's bytes in UTF-8, one character per byte */
export function rawBytes(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');
}

/** What an encoder writes around raw texts, as long as nothing else is encoded. */
export interface RawTextFrame {
  readonly before: string;
  /** `after` followed by `before`, to write between two texts. */
  readonly between: string;
  readonly after: string;
}

/** Builds a frame from what is before and after each raw text. */
export function framed(before: string, after: string): RawTextFrame {
  return { before, between: after + before, after };
}
