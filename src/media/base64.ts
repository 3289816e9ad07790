const EQUALS = 0x3d;
const lineEnds = /[\r\n]+/g;

/**
 * Decodes base64 (RFC 4648 sections 4 and 5) with or without its padding; lines may be broken.
 * @returns the bytes, or null for a text that is no base64, or empty
 */
export function decodeBase64(text: string): Buffer | null {
  const bytes = decodeUnbroken(text);
  if (bytes !== null) return bytes;
  const unbroken = text.replace(lineEnds, '');
  return unbroken.length === text.length ? null : decodeUnbroken(unbroken);
}

/**
 * Node's decoder skips what is not of the alphabet. So the count of the bytes tells: each character that was skipped
 * takes at least one byte away.
 */
function decodeUnbroken(text: string): Buffer | null {
  let length = text.length;
  if (text.charCodeAt(length - 1) === EQUALS) length--;
  if (text.charCodeAt(length - 1) === EQUALS) length--;
  if (length === 0 || length % 4 === 1) return null;
  // Of a character beyond ASCII the decoder may take one byte for a character of the alphabet.
  if (Buffer.byteLength(text, 'utf8') !== text.length) return null;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === Math.floor((length * 3) / 4) ? bytes : null;
}
