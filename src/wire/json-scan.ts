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
import { findJsonFault, invalidJson } from './json-fault.js';
import { endOfString, endOfValue, isSpace, longString, mostDepth, skipSpace } from './json-skip.js';

/** A range `[start, end)` of a body, in bytes. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Positions of the values that routing and splicing need. */
export interface BodySpans {
  /** Offset just after the `{` of the body. */
  readonly open: number;
  /** Value of the top-level key of the same name, without surrounding white space; null if absent. */
  readonly model: Span | null;
  readonly streamOptions: Span | null;
  /** Value of `include_usage` if `stream_options` is an object that contains it. */
  readonly includeUsage: Span | null;
}

/** Result of one pass over a body's bytes, before anything is parsed. */
export interface BodyScan extends BodySpans {
  /** Start and end offsets, in turn, of the contents of long string values, which the skeleton omits. */
  readonly cuts: readonly number[];
  /** Total number of bytes in `cuts`. */
  readonly cutBytes: number;
}

const bodyKeys = ['model', 'stream', 'stream_options'];
const optionKeys = ['include_usage'];

/**
 * Length of `stream_options` with every letter written as an escape like `\u0073`: a longer key matches no wanted one.
 */
const longestEscapedKey = 6 * 'stream_options'.length;

/**
 * Walks a body once and finds the values that routing and splicing need. It only reads the structure. Whether the body
 * is JSON is checked by the parse that follows (`parseBody`), and the offsets are only valid if that succeeds.
 * @param body the whole body; not modified, not retained
 * @returns offsets into the body
 * @throws {GatewayError} `invalid_json` for an empty body, one with a byte order mark, or bytes after its end;
 *   `invalid_request` for a body that is not an object or is nested too deep; `invalid_request_body` for one that
 *   repeats one of the keys above. Parsers differ on which of two equal keys counts, and the gateway must check the one
 *   that an upstream reads.
 */
export function scanBody(body: Buffer): BodyScan {
  const start = skipSpace(body, 0);
  if (body[start] !== OPEN_BRACE) throw notAnObject(body, start);
  const top = scanObject(body, start, bodyKeys);
  if (top.end !== -1 && skipSpace(body, top.end) !== body.length) throw invalidJson(body);
  const streamOptions = top.values[2] ?? null;
  let includeUsage: Span | null = null;
  if (streamOptions !== null && body[streamOptions.start] === OPEN_BRACE) {
    includeUsage = scanObject(body, streamOptions.start, optionKeys).values[0] ?? null;
  }
  return {
    open: start + 1,
    model: top.values[0] ?? null,
    streamOptions,
    includeUsage,
    cuts: top.cuts,
    cutBytes: top.cutBytes,
  };
}

interface ObjectScan {
  /** Offset just after the closing brace, or -1 if there is none. */
  end: number;
  /** Values in the order of the given names. */
  readonly values: (Span | null)[];
  readonly cuts: number[];
  cutBytes: number;
}

/**
 * Finds values of the object that begins at `from`, with the same restrictions as `scanBody`.
 * @param names keys of the object itself
 * @throws {GatewayError} as `scanBody` does
 */
export function findValues(body: Buffer, from: number, names: readonly string[]): readonly (Span | null)[] {
  return scanObject(body, from, names).values;
}

/** The loop of `scanBody`: walks from the `{` at `from` to its `}`, and finds the object's own keys `names`. */
function scanObject(body: Buffer, from: number, names: readonly string[]): ObjectScan {
  const scan: ObjectScan = {
    end: -1,
    values: new Array<Span | null>(names.length).fill(null),
    cuts: [],
    cutBytes: 0,
  };
  const length = body.length;
  let depth = 1;
  let keyNext = true;
  let name = -1;
  let valueStart = 0;
  for (let at = from + 1; at < length; at++) {
    const byte = body[at] as number;
    if (byte === QUOTE) {
      const close = endOfString(body, at + 1);
      if (close === -1) break;
      if (keyNext && depth === 1) {
        keyNext = false;
        name = findName(body, at + 1, close, names);
        if (name !== -1) {
          if (scan.values[name] !== null) throw repeatedKey(names, name);
          valueStart = skipSpace(body, close + 1);
          if (body[valueStart] === COLON) valueStart = skipSpace(body, valueStart + 1);
        }
      } else if (close - at - 1 > longString && !(depth === 1 && name === 0) && !isKey(body, close)) {
        scan.cuts.push(at + 1, close);
        scan.cutBytes += close - at - 1;
      }
      at = close;
    } else if (byte === COMMA) {
      if (depth !== 1) continue;
      if (name !== -1) scan.values[name] = spanOf(body, valueStart, at);
      name = -1;
      keyNext = true;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth++;
      if (depth > mostDepth) throw tooDeep();
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--;
      if (depth !== 0) continue;
      if (name !== -1) scan.values[name] = spanOf(body, valueStart, at);
      scan.end = at + 1;
      break;
    }
  }
  return scan;
}

/** Returns the index in `names` of the key between the quotes at `start - 1` and `end`, even with escapes; or -1. */
function findName(body: Buffer, start: number, end: number, names: readonly string[]): number {
  const length = end - start;
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string;
    if (name.length === length && matches(body, start, name)) return i;
  }
  if (length > longestEscapedKey || !hasBackslash(body, start, end)) return -1;
  try {
    return names.indexOf(JSON.parse(body.toString('utf8', start - 1, end + 1)) as string);
  } catch {
    // An invalid escape, which the parse of the whole body reports.
    return -1;
  }
}

function matches(body: Buffer, start: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    if (body[start + i] !== name.charCodeAt(i)) return false;
  }
  return true;
}

function hasBackslash(body: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if (body[at] === BACKSLASH) return true;
  }
  return false;
}

/** Whether a string is a key. Keys stay complete in the skeleton: two with the same start must not become equal. */
function isKey(body: Buffer, close: number): boolean {
  return body[skipSpace(body, close + 1)] === COLON;
}

function spanOf(body: Buffer, start: number, before: number): Span {
  let end = before;
  while (end > start && isSpace(body[end - 1] as number)) end--;
  return { start, end };
}

function notAnObject(body: Buffer, start: number): GatewayError {
  if (start === body.length) {
    return new GatewayError('invalid_json', 'The request body is empty: send a JSON object.');
  }
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) {
    return new GatewayError(
      'invalid_json',
      'The request body begins with a byte order mark: send the JSON in UTF-8 without one (RFC 8259 section 8.1).',
    );
  }
  if (findJsonFault(body) !== null) return invalidJson(body);
  const found = body[start] === OPEN_BRACKET ? 'an array' : 'a single value';
  return new GatewayError('invalid_request', `The request body must be a JSON object, found ${found}.`);
}

function repeatedKey(names: readonly string[], index: number): GatewayError {
  const name = names[index] as string;
  const param = names === optionKeys ? `stream_options.${name}` : name;
  return new GatewayError(
    'invalid_request_body',
    `The request body has '${param}' twice, and JSON parsers differ on which one counts: send it once.`,
    { param },
  );
}

/** Returns the error of status 400 for a body that is nested deeper than `mostDepth`. */
export function tooDeep(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `The request body is nested deeper than ${mostDepth} levels: flatten it, or send the deep part as a string.`,
  );
}

/**
 * Splits a JSON array without parsing its elements.
 * @param text a JSON text
 * @returns the JSON texts of its elements, or null if it is not an array; errors within long strings are not detected
 */
export function elementsOf(text: Buffer): string[] | null {
  let at = skipSpace(text, 0);
  if (text[at] !== OPEN_BRACKET) return null;
  at = skipSpace(text, at + 1);
  const elements: string[] = [];
  if (text[at] === CLOSE_BRACKET) return skipSpace(text, at + 1) >= text.length ? elements : null;
  for (;;) {
    const end = endOfValue(text, at, mostDepth);
    if (end === -1) return null;
    elements.push(text.toString('utf8', at, end));
    at = skipSpace(text, end);
    if (text[at] === CLOSE_BRACKET) return skipSpace(text, at + 1) >= text.length ? elements : null;
    if (text[at] !== COMMA) return null;
    at = skipSpace(text, at + 1);
  }
}
