/*
 * Raw text is the inside of a JSON string as it is on the wire: UTF-8 with one character a byte (latin1), and no escapes
 * but those of two characters.
 */

/** @returns the text that a raw text stands for */
export function plainText(raw: string): string {
  const text = Buffer.from(raw, 'latin1').toString('utf8');
  return raw.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
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
