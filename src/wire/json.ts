import { GatewayError } from '../errors.js';
import { findJsonFault } from './json-fault.js';
import { endOfString } from './json-skip.js';

/** A JSON object whose members are not known yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** True for a parsed JSON value that is an object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Levels beyond which a text is taken for none: who reads or writes its value in turn would run out of stack. */
const mostDepth = 1000;

/**
 * The value of a text that others have written; undefined for one that is no JSON, is nested deeper than any that is
 * meant, or would hold up the thread.
 * @param most that it may cost (see `usualCost`)
 */
export function parseJson(text: string, most = answerCost): unknown {
  const isSmall = text.length <= 2 * mostDepth && isCheap(text.length, most);
  if (!isSmall && isUnbearable(text, most, mostDepth)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text as a JSON object, or null when it is anything else, or one that `parseJson` does not take. */
export function parseObject(text: string): JsonObject | null {
  const value = parseJson(text);
  return isObject(value) ? value : null;
}

/** So many characters for each value: then what a parse makes and drops again weighs less than another look at them. */
const sparse = 8;

/**
 * True for the JSON text of an object, of whose value nothing is needed: it costs no more than its length, however
 * many values it has.
 */
export function isObjectText(text: string): boolean {
  const start = /[^ \t\n\r]/.exec(text);
  if (start?.[0] !== '{') return false;
  if (!isUnbearable(text, text.length / sparse, mostDepth)) return parseObject(text) !== null;
  return (
    !isUnbearable(text, Number.POSITIVE_INFINITY, mostDepth) && findJsonFault(Buffer.from(text)) === null
  );
}

/** True for a parsed JSON value that is an array; `Array.isArray` would make its elements `any`. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** The value when it is an array, else an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return isList(value) ? value : [];
}

/** The object, or an empty one in the place of anything else. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** A loop: it takes half the time of `every`. */
function isObjects(value: unknown): value is readonly JsonObject[] {
  if (!isList(value)) return false;
  for (let i = 0; i < value.length; i++) if (!isObject(value[i])) return false;
  return true;
}

/** The items of a list of objects; of anything else none. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  return isObjects(value) ? value : [];
}

/** The value when it is a string, else null. */
export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** The text, or an empty one in the place of anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The value when it is true or false, else null. */
export function flagOrNull(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}

/** The value when it is a finite number, else null. */
export function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/**
 * The value floored when it is a number that may count something, else -1, as `readNumbers` has it: for counts that an
 * upstream may leave out or null. So is one that is larger than any count: no sum of several is infinite, which JSON has no
 * word for.
 */
export function countOrNone(value: unknown): number {
  const isCount = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
  return isCount ? Math.floor(value) : -1;
}

/** The same, but 0 where there is none. */
export function countOf(value: unknown): number {
  return Math.max(0, countOrNone(value));
}

/** Shorter texts gain nothing. */
const leastLength = 64;
/** All but the ASCII characters that stand for themselves in a JSON string. */
const special = /[^ !#-[\]-\u007f]/;

/**
 * A text as a JSON string: what `JSON.stringify` gives, in half its time for long texts in which nothing has to be
 * escaped, as those are that are files in base64.
 */
export function quoted(text: string): string {
  return text.length < leastLength || hasSpecial(text) ? JSON.stringify(text) : `"${text}"`;
}

/** What most texts have of it is found without a look at each character. */
function hasSpecial(text: string): boolean {
  return text.includes('\n') || text.includes('"') || special.test(text);
}

/**
 * Changes the objects of a list, and leaves all else in it as it stands.
 * @param change gives an object as it is to be, the same one where nothing is to do, or null to leave it out
 * @returns null for a list in which nothing is changed, and for what is no list
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
 * What it costs to parse a JSON text, told before it is parsed: tiny values, of which a few kilobytes may unpack to
 * millions, keep the thread for seconds where as many bytes of long strings take milliseconds.
 */

/** Any value counts 1: a number takes some 0.03 µs, an array or object and a new name ten times that and more. */
const containerCost = 4;
const nameCost = 4;
/** No byte of a text can cost more: brackets, each of which is closed by another. */
const mostPerByte = containerCost / 2;

/** Of what clients send where no config says more: parsed in a tenth of a second. */
export const usualCost = 500_000;
/** Of what upstreams answer: logprobs of thousands of tokens stay below. */
export const answerCost = 4_000_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Whether a text is so short that it cannot cost more than this, whatever is in it. */
export function isCheap(length: number, most: number): boolean {
  return length * mostPerByte <= most;
}

/**
 * Whether a text in UTF-8 costs more than this.
 * @param body Walked as bytes: making a text of a body of 300 KB takes longer than all that is read of it.
 */
export function costsMore(body: Buffer, most: number): boolean {
  const { length } = body;
  if (isCheap(length, most)) return false;
  let cost = 0;
  for (let at = 0; at < length; at++) {
    const byte = body[at] as number;
    if (byte === QUOTE) {
      at = endOfString(body, at + 1);
      // A parse would read all before it finds out.
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

/** @throws {GatewayError} of status 400 for a body that costs more */
export function requireCheapBody(body: Buffer, most: number): void {
  if (costsMore(body, most)) throw costError('request body', most);
}

/** What the sender of a text that costs more is told. @param what it is */
export function costError(what: 'request body' | 'event', most: number): GatewayError {
  return new GatewayError(
    'invalid_request_body',
    `The ${what} has more than ${most} values (each array, object and name of a member counts as ${containerCost}): send ` +
      'fewer at a time, or a part of them as a string.',
  );
}

/** Whether a text costs more than this, or is nested deeper than `mostDepth`. */
export function isUnbearable(text: string, most: number, mostDepth: number): boolean {
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

/** Where the string ends that `from` is in, or -1: long ones are passed over by the native search. */
function endOfText(text: string, from: number): number {
  for (let quote = text.indexOf('"', from); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let before = quote;
    while (before > from && text.charCodeAt(before - 1) === BACKSLASH) before--;
    if (((quote - before) & 1) === 0) return quote;
  }
  return -1;
}
