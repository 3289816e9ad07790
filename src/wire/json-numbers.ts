import { skipSpace } from './json-space.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COLON = 0x3a;

/** Names of numbers to look for; their values go into `values`, in the same order. */
export interface NumberNames {
  readonly names: readonly Buffer[];
}

/** @param names plain ASCII, as the keys of an object, without quotes */
export function numberNames(names: readonly string[]): NumberNames {
  return { names: names.map((name) => Buffer.from(name)) };
}

/**
 * Reads whole numbers out of an object by their names, at any depth inside it, without making a value of it: a parse
 * of a usage object costs several times as much. Where a name occurs twice the first counts.
 * @param start where the object opens
 * @param values filled with the numbers found, -1 for those that are missing or no whole numbers
 * @returns false when the object does not close
 */
export function readNumbers(bytes: Buffer, start: number, wanted: NumberNames, values: number[]): boolean {
  const { names } = wanted;
  for (let i = 0; i < names.length; i++) values[i] = -1;
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth++;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (--depth === 0) return true;
    } else if (byte === QUOTE) {
      const from = at + 1;
      at = stringEnd(bytes, from);
      const value = skipSpace(bytes, at + 1);
      if (bytes[value] !== COLON) continue;
      const index = indexOfName(names, bytes, from, at);
      if (index !== -1 && values[index] === -1)
        values[index] = wholeNumber(bytes, skipSpace(bytes, value + 1));
      at = value;
    }
  }
  return false;
}

function stringEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

function indexOfName(names: readonly Buffer[], bytes: Buffer, from: number, to: number): number {
  const length = to - from;
  next: for (let i = 0; i < names.length; i++) {
    const name = names[i] as Buffer;
    if (name.length !== length) continue;
    for (let j = 0; j < length; j++) if (name[j] !== bytes[from + j]) continue next;
    return i;
  }
  return -1;
}

/** The digits at `from` as a number, or -1 when there are none or something else than the end of a value follows. */
export function wholeNumber(bytes: Buffer, from: number): number {
  let value = 0;
  let at = from;
  for (; at < from + 16; at++) {
    const digit = (bytes[at] as number) - 0x30;
    if (!(digit >= 0 && digit <= 9)) break;
    value = value * 10 + digit;
  }
  const after = bytes[at] as number;
  const ended = after === 0x2c || after === CLOSE_BRACE || after <= 0x20;
  return at > from && ended && Number.isSafeInteger(value) ? value : -1;
}
