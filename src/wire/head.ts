import { GatewayError } from '../errors.js';

/** Response heads of HTTP/1.1 (RFC 9112 sections 2 to 6 and 9.3), read from bytes. No state, no I/O. */

/** A head longer than this is refused. */
export const maxHeadBytes = 16 * 1024;
/** A head with more field lines than this is refused. */
export const maxFields = 100;

const tab = 0x09;
const lf = 0x0a;
const cr = 0x0d;
const space = 0x20;
const colon = 0x3a;
const zero = 0x30;

const protocolName = Buffer.from('HTTP/1.');

/** By byte: 0 not a token character (RFC 9110 section 5.6.2), 1 a token character, 2 an upper-case letter. */
export const tokenBytes = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
  tokenBytes[character.charCodeAt(0)] = 1;
}
for (let byte = 0x41; byte <= 0x5a; byte++) tokenBytes[byte] = 2;

/** By byte: 1 where a field value or reason phrase may hold it: tab, visible ASCII, space and obs-text. */
export const textBytes = new Uint8Array(256).fill(1, space);
textBytes[tab] = 1;
textBytes[0x7f] = 0;

/** The head of an answer. Names are lower-case; values have no white space around them. */
export class ParsedHead {
  status = 0;
  /** Minor version: 0 or 1. */
  minor = 1;
  /** Its field lines as they came, until somebody asks for `fields`: most answers have none that anybody wants. */
  lines = '';
  /** See `mayHave`; until they are known, those of all names. Fields that govern have members of their own, and count for none. */
  initials = -1;
  /** Length of the body where the framing says it (0 for answers that have none), else -1. */
  contentLength = -1;
  /** True when the body comes in chunks. */
  chunked = false;
  /** False when the connection must not carry another request. */
  reusable = true;
  /** `timeout` of the `keep-alive` field in seconds, or -1. */
  keepAliveSeconds = -1;
  /** Value of the only `content-encoding` field, lower-case, or null; empty when there are several fields. */
  contentCoding: string | null = null;
  /** First value of `content-type`, or null. */
  contentType: string | null = null;
  /** Offset in the buffer of the first byte after the head. */
  end = 0;
  #fields: string[] | null = null;

  /** `[name, value, name, value, …]`, in the order in which they came. */
  get fields(): string[] {
    this.#fields ??= cutFields(this.lines);
    return this.#fields;
  }

  /** Whether a name of a field that does not govern may begin with one of these letters. @param initials as `initialsOf` gives them */
  mayHave(initials: number): boolean {
    return (this.initials & initials) !== 0;
  }

  /** First value of a field, or null. The name is lower-case. */
  get(name: string): string | null {
    const fields = this.fields;
    for (let i = 0; i < fields.length; i += 2) {
      if (fields[i] === name) return fields[i + 1] ?? null;
    }
    return null;
  }
}

/** Letters as bits, without their case. Other characters of a name share theirs. */
export function initialsOf(letters: string): number {
  let bits = 0;
  for (let i = 0; i < letters.length; i++) bits |= initialOf(letters.charCodeAt(i));
  return bits;
}

function initialOf(byte: number): number {
  return 1 << (byte & 0x1f);
}

/** Cuts field lines that `readFields` has found good. */
function cutFields(lines: string): string[] {
  const fields: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const lineEnd = lines.indexOf('\r\n', at);
    const nameEnd = lines.indexOf(':', at);
    if (lineEnd === at) break;
    let start = nameEnd + 1;
    let end = lineEnd;
    while (start < end && isBlank(lines.charCodeAt(start))) start++;
    while (end > start && isBlank(lines.charCodeAt(end - 1))) end--;
    fields.push(lines.slice(at, nameEnd).toLowerCase(), lines.slice(start, end));
    at = lineEnd + 2;
  }
  return fields;
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === tab;
}

/**
 * Reads a response head from `buffer[start, end)`, where a byte beyond `end` may be anything.
 * Complete lines are checked even while the head is incomplete, so that a peer that speaks another protocol is
 * found out at once.
 * @param toHead true when the request was a HEAD, whose answer has no body whatever its fields say.
 * @returns the head; null when more bytes are needed; or, for a head that is refused, the reason.
 */
export function parseHead(
  buffer: Buffer,
  start: number,
  end: number,
  toHead: boolean,
): ParsedHead | string | null {
  const limit = Math.min(end, start + maxHeadBytes);
  // A head that is whole ends before any line of its body: it need not be looked for.
  const stop = buffer.lastIndexOf(lf, limit - 1) + 1;
  const unfinished = limit - start === maxHeadBytes ? 'head too large' : null;
  if (limit === start) return unfinished;

  let at = start;
  // Bytes of something else may have no line feed: they are not waited for until there are too many of them.
  for (let i = 0; i < protocolName.length && at < limit; i++, at++) {
    if (buffer[at] !== protocolName[i]) return 'not an HTTP/1 status line';
  }
  if (stop <= start) return unfinished;
  const head = new ParsedHead();
  head.minor = (buffer[at] as number) - zero;
  if (head.minor !== 0 && head.minor !== 1) return 'unknown HTTP version';
  if (buffer[at + 1] !== space) return 'malformed status line';
  at += 2;
  let status = 0;
  for (let i = 0; i < 3; i++, at++) {
    const digit = (buffer[at] as number) - zero;
    if (digit < 0 || digit > 9) return 'malformed status code';
    status = status * 10 + digit;
  }
  if (status < 100) return 'malformed status code';
  head.status = status;
  // The space after the code belongs to the grammar, but servers without a reason phrase leave it out.
  if (buffer[at] === space) {
    at++;
    while (textBytes[buffer[at] as number] === 1) at++;
  }
  if (buffer[at] !== cr || buffer[at + 1] !== lf) return 'malformed status line';
  at += 2;
  return readFields(head, buffer, at, stop, toHead) ?? unfinished;
}

/**
 * Every range that gets here ends with a line feed, which stops all the inner loops: no bounds checks in them. Only the
 * fields that govern the connection and the body are cut out.
 */
function readFields(
  head: ParsedHead,
  buffer: Buffer,
  from: number,
  stop: number,
  toHead: boolean,
): ParsedHead | string | null {
  let at = from;
  let count = 0;
  let initials = 0;
  const framing = new Framing();
  while (at < stop) {
    if (buffer[at] === cr) {
      if (buffer[at + 1] !== lf) return 'bare carriage return';
      head.lines = buffer.toString('latin1', from, at);
      head.initials = initials;
      head.end = at + 2;
      return settle(head, framing, toHead);
    }
    const nameStart = at;
    while ((tokenBytes[buffer[at] as number] as number) > 0) at++;
    const nameEnd = at;
    if (nameEnd === nameStart || buffer[nameEnd] !== colon) return 'malformed field name';
    at++;
    while (isBlank(buffer[at])) at++;
    const valueStart = at;
    while (textBytes[buffer[at] as number] === 1) at++;
    if (buffer[at] !== cr || buffer[at + 1] !== lf) return 'malformed field value';
    let valueEnd = at;
    while (valueEnd > valueStart && isBlank(buffer[valueEnd - 1])) valueEnd--;
    if (++count > maxFields) return 'too many fields';
    const name = governingName(buffer, nameStart, nameEnd);
    if (name === null) initials |= initialOf(buffer[nameStart] as number);
    else {
      // A tab is white space here as well (RFC 9110 section 5.6.3), but llhttp takes it for a part of these two: what
      // two parsers frame differently is refused.
      if (valueEnd < at && governsFraming(name) && buffer.subarray(valueEnd, at).includes(tab))
        return 'tab after a framing field';
      const problem =
        name === 'content-length'
          ? heedLength(framing, decimalAt(buffer, valueStart, valueEnd))
          : heed(head, framing, name, valueText(buffer, valueStart, valueEnd));
      if (problem !== null) return problem;
    }
    at += 2;
  }
  return null;
}

/** Fields that govern the connection and the body, and the type. */
const governing = [
  'connection',
  'keep-alive',
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
] as const;
type GoverningName = (typeof governing)[number];

interface Spelled<Text extends string = string> {
  readonly text: Text;
  readonly bytes: Uint8Array;
}

function byLength<Text extends string>(texts: readonly Text[]): readonly (readonly Spelled<Text>[])[] {
  const longest = Math.max(...texts.map((text) => text.length));
  return Array.from({ length: longest + 1 }, (_, length) =>
    texts
      .filter((text) => text.length === length)
      .map((text) => ({ text, bytes: Uint8Array.from(Buffer.from(text, 'latin1')) })),
  );
}

const governingNames = byLength(governing);
/** Values that come again and again: without a string of its own for each head they are compared in no time. */
const usualValues = byLength([
  'close',
  'keep-alive',
  'chunked',
  'application/json',
  'application/json; charset=utf-8',
  'text/event-stream',
  'text/event-stream; charset=utf-8',
]);

const noValues: readonly Spelled[] = [];

/** The name of a field that governs, whatever its case; null for any other. */
function governingName(buffer: Buffer, start: number, end: number): GoverningName | null {
  const length = end - start;
  if (length >= governingNames.length) return null;
  const names = governingNames[length] as readonly Spelled<GoverningName>[];
  next: for (let i = 0; i < names.length; i++) {
    const { text, bytes } = names[i] as Spelled<GoverningName>;
    // Of all bytes of a token only the letters have another that differs from them in this bit.
    for (let j = 0; j < length; j++) if (((buffer[start + j] as number) | 0x20) !== bytes[j]) continue next;
    return text;
  }
  return null;
}

function valueText(buffer: Buffer, start: number, end: number): string {
  const length = end - start;
  const values = length < usualValues.length ? (usualValues[length] as readonly Spelled[]) : noValues;
  next: for (let i = 0; i < values.length; i++) {
    const { text, bytes } = values[i] as Spelled;
    for (let j = 0; j < length; j++) if (buffer[start + j] !== bytes[j]) continue next;
    return text;
  }
  return buffer.toString('latin1', start, end);
}

function governsFraming(name: GoverningName): boolean {
  return name === 'content-length' || name === 'transfer-encoding';
}

/** What the fields of a head say about its body. */
class Framing {
  length = -1;
  chunked = false;
}

/** Takes note of a field that governs. @returns why the head is refused, or null */
function heed(
  head: ParsedHead,
  framing: Framing,
  name: Exclude<GoverningName, 'content-length'>,
  value: string,
): string | null {
  switch (name) {
    case 'connection':
      if (asksToClose(value)) head.reusable = false;
      return null;
    case 'keep-alive':
      head.keepAliveSeconds = timeoutOf(value);
      return null;
    case 'content-type':
      head.contentType ??= value;
      return null;
    case 'content-encoding':
      head.contentCoding = head.contentCoding === null ? value.toLowerCase() : '';
      return null;
    case 'transfer-encoding':
      if (framing.chunked) return 'repeated transfer-encoding';
      if (head.minor === 0) return 'transfer-encoding in an HTTP/1.0 answer';
      if (value.toLowerCase() !== 'chunked') return 'transfer coding other than chunked';
      framing.chunked = true;
      return null;
  }
}

/** The same for the length of the body, -1 where that is none. */
function heedLength(framing: Framing, length: number): string | null {
  if (framing.length !== -1) return 'repeated content-length';
  framing.length = length;
  return length === -1 ? 'malformed content-length' : null;
}

/** Answers that have no body (RFC 9112 section 6.3), and no length of one (RFC 9110 section 8.6). */
export function isBodyless(status: number): boolean {
  return status < 200 || status === 204 || status === 304;
}

/** RFC 9112 section 6.3: how the body of this answer ends. */
function settle(head: ParsedHead, framing: Framing, toHead: boolean): ParsedHead | string {
  if (framing.chunked && framing.length !== -1) return 'transfer-encoding together with content-length';
  if (head.minor === 0) head.reusable = false;
  if (toHead || isBodyless(head.status)) {
    head.contentLength = 0;
  } else if (framing.chunked) {
    head.chunked = true;
  } else {
    head.contentLength = framing.length;
    // Only the end of the connection ends such a body.
    if (framing.length === -1) head.reusable = false;
  }
  return head;
}

/** The number that decimal digits stand for, or -1 when they are none or not exact as a double. */
function decimalAt(bytes: Uint8Array, start: number, end: number): number {
  if (start === end) return -1;
  let number = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] as number) - zero;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
    if (number > Number.MAX_SAFE_INTEGER) return -1;
  }
  return number;
}

/** Whether a `connection` header says that the connection ends with this message (RFC 9112 section 9.6). */
export function asksToClose(connection: string): boolean {
  // What nearly all say, if they say anything.
  return connection !== '' && connection !== 'keep-alive' && hasToken(connection, 'close');
}

function hasToken(list: string, token: string): boolean {
  const lower = list.toLowerCase();
  return lower === token || lower.split(',').some((item) => item.trim() === token);
}

function timeoutOf(value: string): number {
  for (const parameter of value.toLowerCase().split(',')) {
    const trimmed = parameter.trim();
    if (!trimmed.startsWith('timeout=')) continue;
    const digits = trimmed.slice('timeout='.length);
    const seconds = /^\d+$/.test(digits) ? Number(digits) : -1;
    return Number.isSafeInteger(seconds) ? seconds : -1;
  }
  return -1;
}

/**
 * Heads of requests to upstreams. They are written as Latin-1, where U+010A would become a line feed, so a head is made
 * of lines that were checked one by one, and this is the one place that makes them: what a connection writes is of the
 * type `HeadLines`, which nothing else gives.
 */
declare const checked: unique symbol;

/** A request line, header lines or both, with CRLF behind each; nothing but printable ASCII and tabs between them. */
export type HeadLines = string & { readonly [checked]: true };

export const noLines = '' as HeadLines;

/** Text that is printable ASCII by the way in which it is made, so that it need not be looked at for each head. */
export type Writable = string & { readonly [checked]: true };

/** RFC 9112 section 3.2: white space would end the target; a fragment is none of its parts (RFC 9110 section 7.1). */
const target = /^\/[\x21\x22\x24-\x7e]*$/;
/** A segment that leads out of the one before, in every spelling that some server reads as such. */
const dotSegment = /(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?=[/\\;?]|%2f|%5c|$)/i;

const writable = /^[\t\x20-\x7e]*$/;

/** Whether a header can have this value: printable ASCII and tabs. */
export function isWritable(value: string): boolean {
  return writable.test(value);
}

/** Whether a path stays where it says: without `.` and `..` as segments. The query is not looked at. */
export function staysInPlace(path: string): boolean {
  const query = path.indexOf('?');
  return !dotSegment.test(query === -1 ? path : path.slice(0, query));
}

/**
 * The first line of a request.
 * @param path with its query
 * @throws {GatewayError} `internal_error` for what is no method or no target, and for `.` and `..` as segments
 */
export function requestLine(method: string, path: string): HeadLines {
  if (!isToken(method)) throw unwritable('the method cannot be written');
  if (!target.test(path) || !staysInPlace(path)) throw unwritable('the path cannot be written');
  return `${method} ${path} HTTP/1.1\r\n` as HeadLines;
}

/**
 * The line of a header.
 * @throws {GatewayError} `internal_error` for a name that is no token, or a value with another character than
 * printable ASCII and tabs
 */
export function headerLine(name: string, value: string): HeadLines {
  if (!isToken(name)) throw unwritable('a header name that is no token');
  if (!isWritable(value)) throw unwritable(`a character that the header ${name} may not hold`);
  return `${name}: ${value}\r\n` as HeadLines;
}

/** As `headerLine`, but null for a value that cannot be written. */
export function headerLineOrNull(name: string, value: string): HeadLines | null {
  return isWritable(value) && isToken(name) ? (`${name}: ${value}\r\n` as HeadLines) : null;
}

/**
 * Makes lines of one header, whose name is then checked once.
 * @throws {GatewayError} as `headerLine`, and so does what it returns
 */
export function headerLinesOf(name: string): (value: string) => HeadLines {
  const start = headerLine(name, '').slice(0, -2);
  return (value) => {
    if (!isWritable(value)) throw unwritable(`a character that the header ${name} may not hold`);
    return `${start}${value}\r\n` as HeadLines;
  };
}

/** The same for values that need no check: looking at each costs 1.5 % of a 1 KB call, for it makes one string of them. */
export function writableLinesOf(name: string): (value: Writable) => HeadLines {
  const start = headerLine(name, '').slice(0, -2);
  return (value) => `${start}${value}\r\n` as HeadLines;
}

/** Lines in their order. Not of any number, which would cost an array for each head. */
export function joinLines(
  first: HeadLines,
  second: HeadLines,
  third: HeadLines = noLines,
  fourth: HeadLines = noLines,
  fifth: HeadLines = noLines,
  sixth: HeadLines = noLines,
): HeadLines {
  return (first + second + third + fourth + fifth + sixth) as HeadLines;
}

/** Joins lines that most requests have in common with the one before: the same two give the very same string again. */
export class LinePair {
  #first = noLines;
  #second = noLines;
  #both = noLines;

  join(first: HeadLines, second: HeadLines): HeadLines {
    if (second === noLines) return first;
    if (first === noLines) return second;
    if (first === this.#first && second === this.#second) return this.#both;
    this.#first = first;
    this.#second = second;
    this.#both = joinLines(first, second);
    return this.#both;
  }
}

/** Those of some header lines whose names a test lets pass. */
export function linesWhere(lines: HeadLines, passes: (name: string) => boolean): HeadLines {
  if (lines === noLines) return noLines;
  const kept = lines.split('\r\n').filter((line) => line !== '' && passes(line.slice(0, line.indexOf(':'))));
  return kept.map((line) => `${line}\r\n`).join('') as HeadLines;
}

/**
 * The same lines as one string in memory, for those that are written again and again: of a string that was put together
 * the parts are copied, one by one, each time it is written.
 */
export function inOnePiece<Text extends string>(lines: Text): Text {
  return Buffer.from(lines, 'latin1').toString('latin1') as Text;
}

/** The names and values of header lines, each with CRLF behind it. */
export function fieldsOf(lines: string): readonly (readonly [string, string])[] {
  return lines
    .split('\r\n')
    .slice(0, -1)
    .map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
}

/** True for a token (RFC 9110 section 5.6.2): a method, or a header's name. */
export function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!tokenBytes[text.charCodeAt(i)]) return false;
  return text !== '';
}

/** The caller is told nothing of it: a value that is a caller's is refused with its name where it is taken in. */
function unwritable(cause: string): GatewayError {
  return new GatewayError('internal_error', null, { cause });
}
