/** First byte at or after `from` that is not JSON white space (RFC 8259 section 2), or the end of the bytes. */
export function skipSpace(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  let at = from;
  while (at < length && isSpace(bytes[at] as number)) at++;
  return at;
}

export function isSpace(byte: number): boolean {
  return byte <= 0x20 && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
}

/** So many bytes tell a text from anything else. */
export const textWithin = 512;

/** Where a text begins, behind a byte order mark and white space. */
export function textStart(bytes: Buffer): number {
  return skipSpace(bytes, bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0);
}

/** Whether it may be a text, or the beginning of one: no control character is among its first bytes. */
export function looksLikeText(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, textWithin);
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] as number;
    if (byte === 0x7f || (byte < 0x20 && !isSpace(byte))) return false;
  }
  return length > 0;
}
