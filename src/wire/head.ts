import { randomBytes } from 'node:crypto';
import { GatewayError } from '../errors.js';

/* What heads of HTTP/1.1 are made of; the ids of requests; and heads of requests to upstreams, which bear them. */

/** A head longer than this is refused. */
export const maxHeadBytes = 16 * 1024;

/** By byte: 0 not a token character (RFC 9110 section 5.6.2), 1 a token character, 2 an upper-case letter. */
export const tokenBytes = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
  tokenBytes[character.charCodeAt(0)] = 1;
}
for (let byte = 0x41; byte <= 0x5a; byte++) tokenBytes[byte] = 2;

/** By byte: 1 where a field value or reason phrase may hold it: tab, visible ASCII, space and obs-text. */
export const textBytes = new Uint8Array(256).fill(1, 0x20);
textBytes[0x09] = 1;
textBytes[0x7f] = 0;

/** Letters as bits, without their case. Other characters of a name share theirs. */
export function initialsOf(letters: string): number {
  let bits = 0;
  for (let i = 0; i < letters.length; i++) bits |= initialOf(letters.charCodeAt(i));
  return bits;
}

/** The same of the code of one. */
export function initialOf(byte: number): number {
  return 1 << (byte & 0x1f);
}

/** Answers that have no body (RFC 9112 section 6.3), and no length of one (RFC 9110 section 8.6). */
export function isBodyless(status: number): boolean {
  return status < 200 || status === 204 || status === 304;
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

/**
 * What the ids of this process's requests begin with. Ids are unique, not secret: this and a counter, so that whoever
 * keeps many of them can keep numbers.
 */
export const requestSeries = `req_${randomBytes(9).toString('hex')}`;

/** Hex digits that an id ends with: those of its number. */
const idDigits = 8;

const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

let lastNumber = -1;
/** What the ids of a series begin with as long as the upper half of their number stays, as one piece. */
let begun = { series: '', half: -1, text: '' };

/** @returns a whole number below 2^32, above the one before until they have come round */
export function nextRequestNumber(): number {
  lastNumber = (lastNumber + 1) % 0x1_0000_0000;
  return lastNumber;
}

/**
 * The id of a request: its series and `idDigits` hex digits. The low bytes come from a table, since `toString(16)` for each
 * of them would be slower than all the rest of it, and the rest is one string, since of one that was put together the
 * parts are copied each time it is sent.
 */
export function requestIdOf(series: string, number: number): Writable {
  const half = number >>> 16;
  if (half !== begun.half || series !== begun.series)
    begun = { series, half, text: [series, hexBytes[half >> 8], hexBytes[half & 0xff]].join('') };
  return (begun.text + ((hexBytes[(number >> 8) & 0xff] as string) + hexBytes[number & 0xff])) as Writable;
}

/** The id of one of the requests that come over a WebSocket. @param id of the request for the WebSocket */
export function messageIdOf(id: Writable, count: number): Writable {
  return `${id}_${count}` as Writable;
}

/* Heads of requests to upstreams that differ from each other by the number of their id alone. */

/** A head without its framing and the empty line. */
export type RequestHeadLines = HeadLines | NumberedHead;

const idLine = writableLinesOf('x-request-id');
const zero = 0x30;
const hexDigits = Buffer.from('0123456789abcdef');
const lengthStart = Buffer.from('content-length: ');
const headEnd = Buffer.from('\r\n\r\n');

/**
 * What many heads of requests with a body have in common. To copy its bytes and to write the eight digits costs a third
 * of joining the lines of each head: that string is copied twice, piece by piece, until it is where it leaves from.
 */
export class KeptHead {
  readonly before: HeadLines;
  readonly after: HeadLines;
  /** With `content-length: ` behind it. */
  readonly bytes: Buffer;
  /** Where the digits of the id begin. */
  readonly digitsAt: number;

  /**
   * @param before request line and header lines before that of the request id
   * @param after those behind it
   */
  constructor(before: HeadLines, after: HeadLines) {
    this.before = before;
    this.after = after;
    this.bytes = Buffer.concat([Buffer.from(new NumberedHead(this, 0).text, 'latin1'), lengthStart]);
    this.digitsAt = before.length + idLineOf(0).length - '\r\n'.length - idDigits;
  }
}

/** One of them. */
export class NumberedHead {
  readonly #kept: KeptHead;
  readonly #number: number;

  /** @param number of its id: see `requestIdOf` */
  constructor(kept: KeptHead, number: number) {
    this.#kept = kept;
    this.#number = number;
  }

  get text(): HeadLines {
    return joinLines(this.#kept.before, idLineOf(this.#number), this.#kept.after);
  }

  /** With the framing of a body of so many bytes, and the empty line. */
  textWith(length: number): string {
    return `${this.text}content-length: ${length}\r\n\r\n`;
  }

  /** Bytes of the same. */
  sizeWith(length: number): number {
    return this.#kept.bytes.length + digitsOf(length) + headEnd.length;
  }

  /** Writes it. @returns where it ends */
  writeTo(target: Buffer, start: number, length: number): number {
    const { bytes, digitsAt } = this.#kept;
    target.set(bytes, start);
    let digit = start + digitsAt + idDigits - 1;
    for (let shift = 0; shift < idDigits * 4; shift += 4)
      target[digit--] = hexDigits[(this.#number >>> shift) & 0xf] as number;
    const end = start + bytes.length + digitsOf(length);
    let rest = length;
    for (let at = end - 1; at >= start + bytes.length; at--) {
      target[at] = zero + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    target.set(headEnd, end);
    return end + headEnd.length;
  }
}

/** A head as text. */
export function headText(head: RequestHeadLines): HeadLines {
  return typeof head === 'string' ? head : head.text;
}

function idLineOf(number: number): HeadLines {
  return idLine(requestIdOf(requestSeries, number));
}

/** How many decimal digits a whole number has. */
function digitsOf(number: number): number {
  let digits = 1;
  for (let least = 10; number >= least; least *= 10) digits++;
  return digits;
}
