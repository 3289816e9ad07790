import { randomBytes } from 'node:crypto';
import { GatewayError } from '../errors.js';
import { ZERO } from './bytes.js';

/* Elements of HTTP/1.1 heads; request ids; and heads of requests to upstreams, which contain these ids. */

/** Maximum length of a head. */
export const maxHeadBytes = 16 * 1024;

/** By byte: 0 not a token character (RFC 9110 section 5.6.2), 1 a token character, 2 an upper-case letter. */
export const tokenBytes = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
  tokenBytes[character.charCodeAt(0)] = 1;
}
for (let byte = 0x41; byte <= 0x5a; byte++) tokenBytes[byte] = 2;

/** By byte: 1 if a field value or reason phrase may contain it: tab, visible ASCII, space and obs-text. */
export const textBytes = new Uint8Array(256).fill(1, 0x20);
textBytes[0x09] = 1;
textBytes[0x7f] = 0;

/** Returns letters as a bit set, ignoring case. Other characters of a name share the bits of letters. */
export function initialsOf(letters: string): number {
  let bits = 0;
  for (let i = 0; i < letters.length; i++) bits |= initialOf(letters.charCodeAt(i));
  return bits;
}

/** Returns the bit of one character code. */
export function initialOf(byte: number): number {
  return 1 << (byte & 0x1f);
}

/** Whether answers with a status have no body (RFC 9112 section 6.3) and no `content-length` (RFC 9110 section 8.6). */
export function isBodyless(status: number): boolean {
  return status < 200 || status === 204 || status === 304;
}

/** Whether a `connection` header closes the connection after this message (RFC 9112 section 9.6). */
export function asksToClose(connection: string): boolean {
  // `keep-alive` is by far the most frequent value.
  return connection !== '' && connection !== 'keep-alive' && hasToken(connection, 'close');
}

function hasToken(list: string, token: string): boolean {
  const lower = list.toLowerCase();
  return lower === token || lower.split(',').some((item) => item.trim() === token);
}

/** Values of `connection` that name no field, in lower case: `upgrade` is never passed on anyway. */
const plainConnections: ReadonlySet<string> = new Set(['', 'keep-alive', 'close', 'upgrade']);

/**
 * Returns the names in lower case of the fields that belong to one connection because its `connection` header names
 * them (RFC 9110 section 7.6.1), or null if it names none. Names of fields that no message here has may be among them.
 */
export function fieldsOfConnection(connection: string): ReadonlySet<string> | null {
  if (connection === 'keep-alive' || connection === '') return null;
  const lower = connection.toLowerCase();
  if (plainConnections.has(lower)) return null;
  return new Set(lower.split(',').map((name) => name.trim()));
}

/**
 * Marks checked text. Heads of requests to upstreams are written as Latin-1, in which U+010A would become a line feed.
 * Therefore a head consists of lines that were checked one by one. Connections write only the type `HeadLines`, which
 * only this file creates.
 */
declare const checked: unique symbol;

/** A request line, header lines or both, each followed by CRLF. The lines contain only printable ASCII and tabs. */
export type HeadLines = string & { readonly [checked]: true };

export const noLines = '' as HeadLines;

/** Text that is printable ASCII by construction, and therefore is not checked for each head. */
export type Writable = string & { readonly [checked]: true };

/** RFC 9112 section 3.2: white space would end the target, and it has no fragment (RFC 9110 section 7.1). */
const target = /^\/[\x21\x22\x24-\x7e]*$/;
/** A segment `.` or `..`, in every spelling that some server accepts as one. */
const dotSegment = /(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?=[/\\;?]|%2f|%5c|$)/i;

const writable = /^[\t\x20-\x7e]*$/;

/** Whether a text may be the value of a header: printable ASCII and tabs. */
export function isWritable(value: string): boolean {
  return writable.test(value);
}

/** Whether a path has no `.` or `..` segment. The query is not checked. */
export function hasNoDotSegments(path: string): boolean {
  const query = path.indexOf('?');
  return !dotSegment.test(query === -1 ? path : path.slice(0, query));
}

/**
 * Returns the first line of a request.
 * @param path including its query
 * @throws {GatewayError} `internal_error` for an invalid method or target, and for `.` and `..` as segments
 */
export function requestLine(method: string, path: string): HeadLines {
  if (!hasNoDotSegments(path)) throw unwritable('the path cannot be written');
  return foreignRequestLine(method, path);
}

/**
 * The same for a server that is not an upstream, where whoever names the URL may name any path.
 * @throws {GatewayError} `internal_error` for an invalid method or target
 */
export function foreignRequestLine(method: string, path: string): HeadLines {
  if (!isToken(method)) throw unwritable('the method cannot be written');
  if (!target.test(path)) throw unwritable('the path cannot be written');
  return `${method} ${path} HTTP/1.1\r\n` as HeadLines;
}

/**
 * Returns the line of a header.
 * @throws {GatewayError} `internal_error` for a name that is not a token, or a value with characters other than
 *   printable ASCII and tabs
 */
export function headerLine(name: string, value: string): HeadLines {
  if (!isToken(name)) throw unwritable('a header name that is no token');
  if (!isWritable(value)) throw unwritable(`a character that the header ${name} may not hold`);
  return `${name}: ${value}\r\n` as HeadLines;
}

/** Like `headerLine`, but returns null for a name or value that cannot be written. */
export function headerLineOrNull(name: string, value: string): HeadLines | null {
  return isWritable(value) && isToken(name) ? (`${name}: ${value}\r\n` as HeadLines) : null;
}

/**
 * Returns a function that makes lines of one header. The name is checked only once.
 * @throws {GatewayError} as `headerLine` does; the returned function as well
 */
export function headerLinesOf(name: string): (value: string) => HeadLines {
  const start = headerLine(name, '').slice(0, -2);
  return (value) => {
    if (!isWritable(value)) throw unwritable(`a character that the header ${name} may not hold`);
    return `${start}${value}\r\n` as HeadLines;
  };
}

/** Returns the line of a request id. Needs no check, which would flatten the string and cost 1.5 % of a 1 KB call. */
export function requestIdLine(id: Writable): HeadLines {
  return `x-request-id: ${id}\r\n` as HeadLines;
}

/**
 * Joins lines in order. The number of parameters is fixed, since a rest parameter would cost an array for each head.
 */
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

/** Joins two lines that most requests share with the previous one: the same arguments return the same string object. */
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

/** Returns the header lines whose names pass a test. */
export function linesWhere(lines: HeadLines, passes: (name: string) => boolean): HeadLines {
  if (lines === noLines) return noLines;
  const kept = lines.split('\r\n').filter((line) => line !== '' && passes(line.slice(0, line.indexOf(':'))));
  return kept.map((line) => `${line}\r\n`).join('') as HeadLines;
}

/**
 * Returns the same lines as a flat string, for lines that are written repeatedly. A concatenated string is copied part
 * by part each time it is written.
 */
export function inOnePiece<Text extends string>(lines: Text): Text {
  return Buffer.from(lines, 'latin1').toString('latin1') as Text;
}

/** Returns the names and values of header lines, each of which ends with CRLF. */
export function fieldsOf(lines: string): readonly (readonly [string, string])[] {
  return lines
    .split('\r\n')
    .slice(0, -1)
    .map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
}

/** Whether a text is a token (RFC 9110 section 5.6.2): a method, or the name of a header. */
export function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!tokenBytes[text.charCodeAt(i)]) return false;
  return text !== '';
}

/** The message says nothing to the caller: a caller's own values are refused by name where they are received. */
function unwritable(cause: string): GatewayError {
  return new GatewayError('internal_error', null, { cause });
}

/**
 * Prefix of this process's request ids. Ids are unique, not secret: this prefix and a counter, so that code which
 * stores many of them can store numbers.
 */
export const requestSeries = `req_${randomBytes(9).toString('hex')}`;

/** Number of hex digits at the end of an id: those of its number. */
const idDigits = 8;

const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

let lastNumber = -1;
/** Common start of ids while the upper half of their number is the same, as a flat string. */
let begun = { series: '', half: -1, text: '' };

/** @returns the next number: below 2^32, and increasing until it wraps around */
export function nextRequestNumber(): number {
  lastNumber = (lastNumber + 1) % 0x1_0000_0000;
  return lastNumber;
}

/**
 * Returns the id of a request: its series and `idDigits` hex digits. The low bytes come from a table, since
 * `toString(16)` for each would be slower than everything else. The rest is a flat string, since a concatenated one is
 * copied part by part each time it is sent.
 */
export function requestIdOf(series: string, number: number): Writable {
  const half = number >>> 16;
  if (half !== begun.half || series !== begun.series)
    begun = { series, half, text: [series, hexBytes[half >> 8], hexBytes[half & 0xff]].join('') };
  return (begun.text + ((hexBytes[(number >> 8) & 0xff] as string) + hexBytes[number & 0xff])) as Writable;
}

/** Returns the id of a request that arrived over a WebSocket. @param id id of the request that opened the WebSocket */
export function messageIdOf(id: Writable, count: number): Writable {
  return `${id}_${count}` as Writable;
}

/* Heads of requests to upstreams that differ only in the number of their request id. */

/** A head without its framing and the empty line. */
export type RequestHeadLines = HeadLines | NumberedHead;

const hexDigits = Buffer.from('0123456789abcdef');
const lengthStart = Buffer.from('content-length: ');
const headEnd = Buffer.from('\r\n\r\n');

/**
 * The common part of many heads of requests with a body. Copying its bytes and writing the eight digits costs a third
 * of joining the lines of each head. A joined string would be copied twice, part by part, before it is sent.
 */
export class KeptHead {
  readonly before: HeadLines;
  readonly after: HeadLines;
  /** The head, followed by `content-length: `. */
  readonly bytes: Buffer;
  /** Offset of the id's digits. */
  readonly digitsAt: number;

  /**
   * @param before request line, and header lines before that of the request id
   * @param after header lines after that of the request id
   */
  constructor(before: HeadLines, after: HeadLines) {
    this.before = before;
    this.after = after;
    this.bytes = Buffer.concat([Buffer.from(new NumberedHead(this, 0).text, 'latin1'), lengthStart]);
    this.digitsAt = before.length + idLineOf(0).length - '\r\n'.length - idDigits;
  }
}

/** A head made of a `KeptHead` and the number of an id. */
export class NumberedHead {
  readonly #kept: KeptHead;
  readonly #number: number;

  /** @param number number of the id: see `requestIdOf` */
  constructor(kept: KeptHead, number: number) {
    this.#kept = kept;
    this.#number = number;
  }

  get text(): HeadLines {
    return joinLines(this.#kept.before, idLineOf(this.#number), this.#kept.after);
  }

  /** Returns the head with the framing of a body of `length` bytes, and the empty line. */
  textWith(length: number): string {
    return `${this.text}content-length: ${length}\r\n\r\n`;
  }

  /** Returns the length of `textWith` in bytes. */
  sizeWith(length: number): number {
    return this.#kept.bytes.length + digitsOf(length) + headEnd.length;
  }

  /** Writes the same to a buffer. @returns the offset of its end */
  writeTo(target: Buffer, start: number, length: number): number {
    const { bytes, digitsAt } = this.#kept;
    target.set(bytes, start);
    let digit = start + digitsAt + idDigits - 1;
    for (let shift = 0; shift < idDigits * 4; shift += 4)
      target[digit--] = hexDigits[(this.#number >>> shift) & 0xf] as number;
    const end = start + bytes.length + digitsOf(length);
    let rest = length;
    for (let at = end - 1; at >= start + bytes.length; at--) {
      target[at] = ZERO + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    target.set(headEnd, end);
    return end + headEnd.length;
  }
}

/** Returns a head as text. */
export function headText(head: RequestHeadLines): HeadLines {
  return typeof head === 'string' ? head : head.text;
}

function idLineOf(number: number): HeadLines {
  return requestIdLine(requestIdOf(requestSeries, number));
}

/** Returns the number of decimal digits of a whole number. */
function digitsOf(number: number): number {
  let digits = 1;
  for (let least = 10; number >= least; least *= 10) digits++;
  return digits;
}
