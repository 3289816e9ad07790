import { randomUUID } from 'node:crypto';
import { CLOSE_BRACKET, COMMA, DOT, MINUS, OPEN_BRACE, OPEN_BRACKET, QUOTE, ZERO } from '../../wire/bytes.js';
import { isObject } from '../../wire/json.js';
import { scanBody } from '../../wire/json-scan.js';
import { afterColon, skipSpace } from '../../wire/json-skip.js';
import { parseBody } from '../../wire/skeleton.js';

const formatKey = Buffer.from('"encoding_format"');
/** The opening and closing quotes make it a key or a whole string; a colon after it makes it a key. */
const embeddingKey = Buffer.from('"embedding"');
const idKey = Buffer.from('"id"');
const dataKey = Buffer.from('"data"');

/** Replaces an embedding of an answer. */
interface Replacement {
  readonly text: Buffer;
  /** Offset after the replaced text. */
  readonly end: number;
}

/**
 * Converts the vectors of an answer to the form that the client requested. SDKs that request base64 read numbers as
 * empty vectors, and clients that request numbers cannot read base64. Base64 contains single-precision numbers,
 * little-endian. Each is written as JavaScript writes that single, which reads back the same. An answer with numbers
 * also gets the id that Mistral's clients require.
 * @param body a validated request
 * @returns a function that converts a whole answer, and returns the same buffer if it has that form already
 */
export function encodingAmender(body: Buffer): (answer: Buffer) => Buffer {
  const asBase64 = asksForBase64(body);
  return (answer) => (asBase64 ? amendedTo(true, answer) : withId(amendedTo(false, answer)));
}

/** Makes the id of an answer. */
export function embeddingsId(): string {
  return `embd-${randomUUID()}`;
}

/** Returns the same buffer if it has an id or is no answer. Vectors contain no quotes and so no such key. */
function withId(answer: Buffer): Buffer {
  const start = skipSpace(answer, 0);
  if (answer[start] !== OPEN_BRACE || answer.includes(idKey) || !answer.includes(dataKey)) return answer;
  const id = Buffer.from(`"id":"${embeddingsId()}",`);
  return Buffer.concat([answer.subarray(0, start + 1), id, answer.subarray(start + 1)]);
}

/**
 * Returns an answer with its vectors as base64 or as lists of numbers. Returns the same buffer if it has that form
 * already.
 */
export function amendedTo(asBase64: boolean, answer: Buffer): Buffer {
  return amend(answer, asBase64 ? OPEN_BRACKET : QUOTE);
}

function asksForBase64(body: Buffer): boolean {
  if (!body.includes(formatKey)) return false;
  const request = parseBody(body, scanBody(body));
  return isObject(request) && request.encoding_format === 'base64';
}

/** @param unwanted first byte of a vector in the form that was not requested */
function amend(answer: Buffer, unwanted: number): Buffer {
  let at = nextEmbedding(answer, 0);
  if (at === -1 || answer[at] !== unwanted) return answer;
  const replace = unwanted === OPEN_BRACKET ? asBase64 : asNumbers;
  const pieces: Buffer[] = [];
  let from = 0;
  for (; at !== -1; at = nextEmbedding(answer, at)) {
    const replacement = replace(answer, at);
    if (replacement === null) continue;
    pieces.push(answer.subarray(from, at), replacement.text);
    from = replacement.end;
    at = from;
  }
  if (pieces.length === 0) return answer;
  pieces.push(answer.subarray(from));
  return Buffer.concat(pieces);
}

/** Returns where the value of the next `embedding` at or after `from` begins, or -1. */
function nextEmbedding(answer: Buffer, from: number): number {
  let at = answer.indexOf(embeddingKey, from);
  while (at !== -1) {
    const value = afterColon(answer, at + embeddingKey.length - 1);
    if (value !== -1) return value;
    at = answer.indexOf(embeddingKey, at + embeddingKey.length);
  }
  return -1;
}

function asBase64(answer: Buffer, at: number): Replacement | null {
  const found = readFloats(answer, at);
  if (found === null) return null;
  // Every platform of uWebSockets.js is little-endian.
  const { buffer, byteOffset, byteLength } = found.values;
  const text = `"${Buffer.from(buffer, byteOffset, byteLength).toString('base64')}"`;
  return { text: Buffer.from(text, 'latin1'), end: found.end };
}

function asNumbers(answer: Buffer, at: number): Replacement | null {
  if (answer[at] !== QUOTE) return null;
  const close = answer.indexOf(QUOTE, at + 1);
  if (close === -1) return null;
  // Some JSON writers escape the slash.
  const bytes = Buffer.from(answer.toString('latin1', at + 1, close).replaceAll('\\/', '/'), 'base64');
  if (bytes.length % 4 !== 0) return null;
  const numbers = new Array<number>(bytes.length / 4);
  for (let i = 0; i < numbers.length; i++) numbers[i] = bytes.readFloatLE(4 * i);
  // JSON has no NaN and no infinite numbers.
  if (!numbers.every(Number.isFinite)) return null;
  return { text: Buffer.from(JSON.stringify(numbers), 'latin1'), end: close + 1 };
}

/** Numbers of up to 17 digits stay below: the sum of their digits is off by at most one part in 2^51. */
const highestSum = 1e17;
/** Powers of ten that a double holds exactly. */
const powers = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);
const below = 1 - 2 ** -50;
const above = 1 + 2 ** -50;

/** Result of `readFloats`. */
interface FloatList {
  /** Valid until the next call. */
  readonly values: Float32Array;
  /** Offset after the closing bracket. */
  readonly end: number;
}

let scratch = new Float32Array(4096);

/**
 * Reads a JSON array of numbers into single precision, like `Math.fround` of each. Takes a third of the time of
 * `JSON.parse`: the largest answers have six million numbers.
 * @param open offset of the opening bracket
 * @returns the numbers, or null for anything but a flat array of numbers
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

/** Returns the offset of the first byte that is not part of a number: a comma, a bracket, white space, or the end. */
function endOfToken(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at] as number;
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACKET) break;
    at++;
  }
  return at;
}

/**
 * Returns the number in `bytes[from, end)` as a double that rounds to the right single, or NaN if it is not a number.
 */
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
  // Zeros before the first significant digit add nothing to the sum, so only the sum shows how many digits count.
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
  // Near the middle between two singles, the error of the sum could decide.
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
