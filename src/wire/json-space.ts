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
