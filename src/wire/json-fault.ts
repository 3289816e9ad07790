import { GatewayError } from '../errors.js';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './bytes.js';
import { skipSpace } from './json-skip.js';

/** Where a text violates the JSON grammar, and what was expected there. */
interface JsonFault {
  /** Offset in bytes from the start of the text. */
  readonly offset: number;
  readonly expected: string;
}

/** What the walk expects next: a value, a value or the end of an empty array, a key, and so on. */
type Want = 'value' | 'item' | 'key' | 'member' | 'colon' | 'next' | 'end';

const wanted: Record<Want, string> = {
  value: 'a value',
  item: "a value or ']'",
  key: 'a key in double quotes (no comma may stand before the end)',
  member: "a key in double quotes or '}'",
  colon: "':' after the key",
  next: "',' or the end of the object or array",
  end: 'nothing more after the end of the value',
};

/**
 * Finds the first place where a text violates the JSON grammar (RFC 8259). The engine's own messages lack the position
 * for some errors and quote the text for others. Therefore this slow walk runs after a failed parse.
 * @param text bytes that should be JSON in UTF-8; invalid UTF-8 is not reported, as with `JSON.parse`
 * @returns the first fault, or null for a valid text
 */
export function findJsonFault(text: Uint8Array): JsonFault | null {
  const containers: number[] = [];
  let want: Want = 'value';
  let at = 0;
  for (;;) {
    at = skipSpace(text, at);
    const byte = text[at];
    if (byte === undefined) return want === 'end' ? null : { offset: at, expected: wanted[want] };
    const closes = want === 'next' || want === 'item' || want === 'member';
    if (closes && byte === containers[containers.length - 1]) {
      // An object may end after a member or when empty, and an array after an item or when empty.
      containers.pop();
      want = containers.length === 0 ? 'end' : 'next';
      at++;
    } else if (want === 'next' && byte === COMMA) {
      want = containers[containers.length - 1] === CLOSE_BRACE ? 'key' : 'value';
      at++;
    } else if (want === 'colon' && byte === COLON) {
      want = 'value';
      at++;
    } else if ((want === 'key' || want === 'member') && byte === QUOTE) {
      const end = readString(text, at);
      if (typeof end !== 'number') return end;
      at = end;
      want = 'colon';
    } else if ((want === 'value' || want === 'item') && (byte === OPEN_BRACE || byte === OPEN_BRACKET)) {
      containers.push(byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET);
      want = byte === OPEN_BRACE ? 'member' : 'item';
      at++;
    } else if (want === 'value' || want === 'item') {
      const end = readScalar(text, at, wanted[want]);
      if (typeof end !== 'number') return end;
      at = end;
      want = containers.length === 0 ? 'end' : 'next';
    } else {
      return { offset: at, expected: wanted[want] };
    }
  }
}

/**
 * Creates the error for a body that is not JSON.
 * @param body the whole body, unchanged
 * @returns an `invalid_json` error with the position of the first fault
 */
export function invalidJson(body: Uint8Array): GatewayError {
  const fault = findJsonFault(body);
  if (fault === null) return new GatewayError('invalid_json');
  const { line, column } = lineAndColumn(body, fault.offset);
  return new GatewayError(
    'invalid_json',
    `The request body is not valid JSON: at byte ${fault.offset} (line ${line}, column ${column}) expected ` +
      `${fault.expected}, found ${nameByte(body[fault.offset])}.`,
  );
}

const literals = ['true', 'false', 'null'];

function readScalar(text: Uint8Array, from: number, expected: string): number | JsonFault {
  const byte = text[from];
  if (byte === QUOTE) return readString(text, from);
  if (byte === 0x2d || isDigit(byte)) return readNumber(text, from);
  for (const literal of literals) {
    if (byte !== literal.charCodeAt(0)) continue;
    for (let i = 1; i < literal.length; i++) {
      if (text[from + i] !== literal.charCodeAt(i)) {
        return { offset: from + i, expected: `the rest of ${literal}` };
      }
    }
    return from + literal.length;
  }
  return { offset: from, expected };
}

function readString(text: Uint8Array, from: number): number | JsonFault {
  let at = from + 1;
  for (;;) {
    const byte = text[at];
    if (byte === undefined) {
      return { offset: at, expected: `the end of the string that begins at byte ${from}` };
    }
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) {
      return { offset: at, expected: 'no control character in a string (write it as an escape)' };
    }
    at++;
    if (byte !== BACKSLASH) continue;
    const letter = text[at];
    if (letter === undefined) continue;
    if (!'"\\/bfnrtu'.includes(String.fromCharCode(letter))) {
      return { offset: at, expected: 'one of " \\ / b f n r t u after a backslash' };
    }
    at++;
    if (letter !== 0x75) continue;
    for (let i = 0; i < 4; i++, at++) {
      if (!isHexDigit(text[at])) return { offset: at, expected: 'four hexadecimal digits after \\u' };
    }
  }
}

/** Reads a number by RFC 8259 section 6: without a leading zero, a point without digits, or an empty exponent. */
function readNumber(text: Uint8Array, from: number): number | JsonFault {
  let at = text[from] === 0x2d ? from + 1 : from;
  const first = text[at];
  if (!isDigit(first)) return { offset: at, expected: 'a digit' };
  at = first === 0x30 ? at + 1 : skipDigits(text, at);
  if (text[at] === 0x2e) {
    if (!isDigit(text[at + 1])) return { offset: at + 1, expected: 'a digit after the point' };
    at = skipDigits(text, at + 1);
  }
  if (text[at] === 0x65 || text[at] === 0x45) {
    at++;
    if (text[at] === 0x2b || text[at] === 0x2d) at++;
    if (!isDigit(text[at])) return { offset: at, expected: 'a digit in the exponent' };
    at = skipDigits(text, at);
  }
  return at;
}

function skipDigits(text: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(text[at])) at++;
  return at;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}

/** Returns the line and the column, in bytes. Both count from 1. */
function lineAndColumn(text: Uint8Array, offset: number): { line: number; column: number } {
  let line = 1;
  let lineStart = 0;
  for (let at = 0; at < offset; at++) {
    if (text[at] === 0x0a) {
      line++;
      lineStart = at + 1;
    }
  }
  return { line, column: offset - lineStart + 1 };
}

function nameByte(byte: number | undefined): string {
  if (byte === undefined) return 'the end of the body';
  if (byte > 0x20 && byte < 0x7f) return `'${String.fromCharCode(byte)}'`;
  return `byte 0x${byte.toString(16).padStart(2, '0')}`;
}
