import { type ErrorKind, GatewayError } from '../errors.js';
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
import { findJsonFault } from './json-fault.js';
import { mostDepth as bodyDepth, endOfString, endOfValue } from './json-skip.js';

/** A JSON object with unknown members. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** True for a parsed JSON value that is an object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Maximum nesting. Code that later reads or writes a deeper value could exhaust the stack. */
const mostDepth = 1000;

/**
 * Parses a text from outside. Returns undefined for a text that is not JSON, is nested too deep, or would block the
 * thread.
 * @param most maximum cost (see `usualCost`)
 */
export function parseJson(text: string, most = answerCost): unknown {
  const isSmall = text.length <= 2 * mostDepth && isCheap(text.length, most);
  if (!isSmall && isUnbearable(text, most)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses a text as a JSON object. Returns null for anything else, and for a text that `parseJson` refuses. */
export function parseObject(text: string): JsonObject | null {
  const value = parseJson(text);
  return isObject(value) ? value : null;
}

/** Parses the object at an offset of a JSON text. Returns null for anything else, and for the offset -1. */
export function objectAt(text: Buffer, start: number): JsonObject | null {
  const end = start === -1 ? -1 : endOfValue(text, start, bodyDepth);
  return end === -1 ? null : parseObject(text.toString('utf8', start, end));
}

/** From this many characters per value on, a parse whose result is dropped costs less than a second scan. */
const sparse = 8;

/**
 * Whether a text is a JSON object, for callers that do not need its value. The cost is proportional to its length,
 * however many values it has.
 */
export function isObjectText(text: string): boolean {
  const start = /[^ \t\n\r]/.exec(text);
  if (start?.[0] !== '{') return false;
  if (!isUnbearable(text, text.length / sparse)) return parseObject(text) !== null;
  return !isUnbearable(text, Number.POSITIVE_INFINITY) && findJsonFault(Buffer.from(text)) === null;
}

/** True for a parsed JSON value that is an array. `Array.isArray` would type its elements as `any`. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** Returns the value if it is an array, else an empty array. */
export function listOf(value: unknown): readonly unknown[] {
  return isList(value) ? value : [];
}

/** Returns the value if it is an object, else an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Uses a loop, which takes half the time of `every`. */
function isObjects(value: unknown): value is readonly JsonObject[] {
  if (!isList(value)) return false;
  for (let i = 0; i < value.length; i++) if (!isObject(value[i])) return false;
  return true;
}

/** Returns the value if it is a list of objects only, else an empty list. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  return isObjects(value) ? value : [];
}

/** Returns the value if it is a string, else null. */
export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Returns the value if it is a string, else an empty string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Returns the value if it is a boolean, else null. */
export function flagOrNull(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}

/** Returns the value if it is a finite number, else null. */
export function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/**
 * Returns the value, floored, if it is a valid count, else -1, like `readNumbers`: for counts that an upstream may omit
 * or set to null. Numbers above `Number.MAX_SAFE_INTEGER` are invalid, so that no sum becomes infinite, which JSON
 * cannot express.
 */
export function countOrNone(value: unknown): number {
  const isCount = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
  return isCount ? Math.floor(value) : -1;
}

/** The same, but returns 0 instead of -1. */
export function countOf(value: unknown): number {
  return Math.max(0, countOrNone(value));
}

/**
 * Changes the objects of a list, and leaves its other elements unchanged.
 * @param change returns the new object, the same object for no change, or null to remove it
 * @returns the new list, or null if nothing has changed or the value is not a list
 */
export function changedObjects(
  list: unknown,
  change: (entry: JsonObject) => JsonObject | null,
): unknown[] | null {
  if (!isList(list)) return null;
  const entries: unknown[] = [];
  let isChanged = false;
  for (const entry of list) {
    const next = isObject(entry) ? change(entry) : entry;
    isChanged ||= next !== entry;
    if (next !== null || entry === null) entries.push(next);
  }
  return isChanged ? entries : null;
}

/*
 * Estimates the cost of parsing a JSON text in advance. A compressed body of a few kilobytes may contain millions of
 * tiny values, which block the thread for seconds. The same number of bytes in long strings takes milliseconds.
 */

/**
 * Costs of an array or object, and of the name of a member, where any other value costs 1. A number takes about 0.03
 * µs; an array, an object or a new name takes ten times as long or more.
 */
const containerCost = 4;
const nameCost = 4;
/** Highest possible cost of a byte: that of brackets, each of which needs a closing one. */
const mostPerByte = containerCost / 2;

/** Default limit for what clients send: parsed in a tenth of a second. */
export const usualCost = 500_000;
/** Limit for answers of upstreams. Logprobs of thousands of tokens stay below it. */
const answerCost = 4_000_000;

/** Whether a text is so short that it cannot cost more than `most`, whatever it contains. */
function isCheap(length: number, most: number): boolean {
  return length * mostPerByte <= most;
}

/**
 * Whether a text in UTF-8 costs more than `most`.
 * @param body scanned as bytes: decoding a body of 300 KB to a string would take longer than the scan
 */
export function costsMore(body: Buffer, most: number): boolean {
  const { length } = body;
  if (isCheap(length, most)) return false;
  let cost = 0;
  for (let at = 0; at < length; at++) {
    const byte = body[at] as number;
    if (byte === QUOTE) {
      at = endOfString(body, at + 1);
      // The string never ends: a parse fails after one pass over the text.
      if (at === -1) break;
    } else if (byte === COMMA) cost++;
    else if (byte === COLON) cost += nameCost;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      cost += containerCost;
      if (cost > most) return true;
    }
  }
  return cost > most;
}

/** @throws {GatewayError} of status 400 for a body that costs more than `most` */
export function requireCheapBody(body: Buffer, most: number): void {
  if (costsMore(body, most)) throw costError('request body', most);
}

/** Returns the error for a text that costs more than `most`. @param what the kind of text */
export function costError(what: 'request body' | 'event', most: number): GatewayError {
  return new GatewayError(
    'invalid_request_body',
    `The ${what} has more than ${most} values (each array, object and name of a member counts as ${containerCost}): send ` +
      'fewer at a time, or a part of them as a string.',
  );
}

/** Whether a text costs more than `most`, or is nested deeper than `mostDepth`. */
function isUnbearable(text: string, most: number): boolean {
  const { length } = text;
  let depth = 0;
  let cost = 0;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfText(text, at + 1);
      if (at === -1) break;
    } else if (code === COMMA) cost++;
    else if (code === COLON) cost += nameCost;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      cost += containerCost;
      if (++depth > mostDepth || cost > most) return true;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--;
  }
  return cost > most;
}

/** Returns the offset of the quote that ends the string around `from`, or -1. The native search skips long strings. */
function endOfText(text: string, from: number): number {
  for (let QUOTE = text.indexOf('"', from); QUOTE !== -1; QUOTE = text.indexOf('"', QUOTE + 1)) {
    let before = QUOTE;
    while (before > from && text.charCodeAt(before - 1) === BACKSLASH) before--;
    if (((QUOTE - before) & 1) === 0) return QUOTE;
  }
  return -1;
}

/**
 * Returns a text as a JSON string of printable ASCII characters: it contains no line end, and nothing that a terminal
 * would interpret.
 */
export function asciiQuoted(text: string): string {
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char < 0x20 || char > 0x7e || char === QUOTE || char === BACKSLASH)
      return asciiJson(JSON.stringify(text));
  }
  return `"${text}"`;
}

const others = /[\u007f-\uffff]/g;

/** Escapes all characters of a JSON text that are not printable ASCII. */
export function asciiJson(json: string): string {
  return json.replace(others, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/*
 * Helpers with which the decoders of client bodies read members whose types the schemas leave open.
 */

const longestName = 64;
/** Characters above this have two code units. */
const lastOfOneUnit = 0xffff;

/** Returns a type, role or other word from outside, of any type and length, for use in a message. */
export function nameOfType(word: unknown): string {
  const name = textOrNull(word) ?? 'unknown';
  if (name.length <= longestName) return name;
  const isSplit = (name.codePointAt(longestName - 1) ?? 0) > lastOfOneUnit;
  return name.slice(0, isSplit ? longestName - 1 : longestName);
}

/** Creates an error about a member of a client's body or query. @param at path of the member */
export function memberError(kind: ErrorKind, at: string, message: string): GatewayError {
  return new GatewayError(kind, message, { param: at });
}

/** Creates the error of status 400 for a missing member. @param at path in the client's body, here and below */
export function missingValue(at: string, wanted: string): GatewayError {
  return memberError('missing_parameter', at, `Missing required parameter '${at}': expected ${wanted}.`);
}

/** Creates the error of status 400 for a value of the wrong type. */
export function wrongType(at: string, wanted: string): GatewayError {
  return memberError('invalid_request', at, `Invalid type for '${at}': expected ${wanted}.`);
}

/** Creates the error of status 400 for a value that the schema allows and that has no meaning. */
export function wrongValue(at: string, wanted: string): GatewayError {
  return invalidValue(at, `expected ${wanted}`);
}

/** Does the same with a reason of its own. @param why a clause */
export function invalidValue(at: string, why: string): GatewayError {
  return memberError('invalid_value', at, `Invalid value for '${at}': ${why}.`);
}

/** Creates the error of status 400 for a form field that was sent as a file. */
export function noFile(name: string): GatewayError {
  return memberError(
    'invalid_request',
    name,
    `'${name}' is not taken as a file here: send its value without a filename.`,
  );
}

/**
 * Returns the `name` of a tool or of a tool call.
 * @param at path of the object in the client's body
 * @throws {GatewayError} of status 400 for anything but a non-empty string
 */
export function requireName({ name }: JsonObject, at: string): string {
  if (typeof name !== 'string' || name === '') throw wrongValue(`${at}.name`, 'a name that is not empty');
  return name;
}

/** Reads stop sequences, one or a list. Empty ones and those that are not strings are ignored. */
export function decodeStop(stop: unknown): string[] {
  const sequences: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  return sequences.filter((sequence): sequence is string => typeof sequence === 'string' && sequence !== '');
}

/** Rounds a number to the nearest integer. Returns null for anything else, or if a double cannot hold it exactly. */
export function wholeOrNull(value: unknown): number | null {
  const whole = Math.round(numberOrNull(value) ?? Number.NaN);
  return Number.isSafeInteger(whole) ? whole : null;
}
