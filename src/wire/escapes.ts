import { BACKSLASH, LOWER_U } from './bytes.js';

/*
 * Finds escapes in JSON, and removes them from texts. Both may be of any length and nothing but escapes. The removal is written
 * as loops: a regular expression that calls a function for each escape took up to a second for a megabyte of them.
 */

const PERCENT = 0x25;
const digitsOfUnit = 4;

/** How the escape of a character of one byte begins. */
const escapeStart = Buffer.from('\\u00');

/** @param digits the first or both of the last two digits of escapes; a letter stands for both cases */
export function escapesWith(...digits: readonly string[]): readonly Buffer[] {
  const spelled = new Set(digits.flatMap((each) => [each.toLowerCase(), each.toUpperCase()]));
  return [...spelled].map((each) => Buffer.from(`${escapeStart}${each}`));
}

/** Whether JSON has one of some escapes. Native searches: a loop over all escapes takes up to five times as long. */
export function hasEscape(json: Buffer, escapes: readonly Buffer[]): boolean {
  return json.includes(escapeStart) && escapes.some((each) => json.includes(each));
}

/** Returns a text without one layer of JSON's escapes (RFC 8259 section 7). A backslash before any other character is dropped. */
export function withoutJsonEscapes(text: string): string {
  const units = new Uint16Array(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    let unit = text.charCodeAt(at);
    if (unit === BACKSLASH && at + 1 < text.length) {
      unit = text.charCodeAt(++at);
      const escaped = (unit | 0x20) === LOWER_U ? unitAt(text, at + 1) : -1;
      if (escaped !== -1) {
        unit = escaped;
        at += digitsOfUnit;
      }
    }
    units[length++] = unit;
  }
  return Buffer.from(units.buffer, 0, length * units.BYTES_PER_ELEMENT).toString('utf16le');
}

/** Returns a text without the escapes of URLs (RFC 3986 section 2.1), read as UTF-8. */
export function withoutUrlEscapes(text: string): string {
  const bytes = Buffer.from(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at] as number;
    if (byte === PERCENT) {
      const high = hexDigit(bytes[at + 1] ?? 0);
      const low = hexDigit(bytes[at + 2] ?? 0);
      if (high !== -1 && low !== -1) {
        byte = high * 16 + low;
        at += 2;
      }
    }
    bytes[length++] = byte;
  }
  return bytes.toString('utf8', 0, length);
}

/** Returns the code of four hexadecimal digits, or -1. */
function unitAt(text: string, from: number): number {
  let unit = 0;
  for (let at = from; at < from + digitsOfUnit; at++) {
    const digit = hexDigit(text.charCodeAt(at));
    if (digit === -1) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

/** @param code NaN behind the end of a text */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
