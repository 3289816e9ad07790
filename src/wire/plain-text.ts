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
