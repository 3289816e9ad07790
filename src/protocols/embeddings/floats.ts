import { skipSpace } from '../../wire/json-space.js';

const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Numbers of up to 17 digits stay below: their sum of digits is off by at most one part in 2^51. */
const highestSum = 1e17;
/** Powers of ten that a double holds exactly. */
const powers = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);
const below = 1 - 2 ** -50;
const above = 1 + 2 ** -50;

/** What `readFloats` found. */
export interface FloatList {
  /** Valid until the next call. */
  readonly values: Float32Array;
  /** Offset after the closing bracket. */
  readonly end: number;
}

let scratch = new Float32Array(4096);

/**
 * Reads a JSON array of numbers into single precision, as `Math.fround` of each would, in a third of the
 * time of `JSON.parse`: the largest answers have six million of them.
 * @param open where the array opens
 * @returns the numbers, or null for anything that is no flat array of numbers
 */
export function readFloats(bytes: Buffer, open: number): FloatList | null {
  let at = skipSpace(bytes, open + 1);
  if (bytes[open] !== OPEN_BRACKET) return null;
  if (bytes[at] === CLOSE_BRACKET) return { values: scratch.subarray(0, 0), end: at + 1 };
  for (let count = 0; at < bytes.length; ) {
    const end = endOfToken(bytes, at);
    const value = readFloat(bytes, at, end);
    if (Number.isNaN(value)) return null;
    if (count === scratch.length) scratch = grown(scratch);
    scratch[count++] = value;
    at = skipSpace(bytes, end);
    if (bytes[at] === CLOSE_BRACKET) return { values: scratch.subarray(0, count), end: at + 1 };
    if (bytes[at] !== COMMA) return null;
    at = skipSpace(bytes, at + 1);
  }
  return null;
}

function grown(full: Float32Array): Float32Array<ArrayBuffer> {
  const larger = new Float32Array(full.length * 2);
  larger.set(full);
  return larger;
}

/** Offset of the first byte that is in no number: a comma, a bracket, white space, or the end. */
function endOfToken(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at] as number;
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACKET) break;
    at++;
  }
  return at;
}

/** The number in `bytes[from, end)`, in a double whose single is the right one, or NaN when it is none. */
function readFloat(bytes: Buffer, from: number, end: number): number {
  let at = from;
  const negative = bytes[at] === MINUS;
  if (negative) at++;
  const first = at;
  let sum = 0;
  let point = -1;
  for (; at < end; at++) {
    const digit = (bytes[at] as number) - ZERO;
    if (digit >= 0 && digit <= 9) sum = sum * 10 + digit;
    else if (digit === DOT - ZERO && point === -1) point = at;
    else return slowFloat(bytes, from, end);
  }
  const fraction = point === -1 ? 0 : end - point - 1;
  // Zeros before the first digit that counts add nothing to the sum, so only a sum shows how many digits it has.
  if (
    fraction >= powers.length ||
    sum >= highestSum ||
    end === first ||
    point === first ||
    point === end - 1
  ) {
    return slowFloat(bytes, from, end);
  }
  const value = fraction === 0 ? sum : sum / (powers[fraction] as number);
  // Near the middle between two singles the error of the sum could decide.
  if (Math.fround(value * below) !== Math.fround(value * above)) return slowFloat(bytes, from, end);
  return negative ? -value : value;
}

function slowFloat(bytes: Buffer, from: number, end: number): number {
  try {
    const value: unknown = JSON.parse(bytes.toString('latin1', from, end));
    return typeof value === 'number' ? value : Number.NaN;
  } catch {
    return Number.NaN;
  }
}
