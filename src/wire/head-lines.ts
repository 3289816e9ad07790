/**
 * Heads of requests to upstreams. They are written as Latin-1, where U+010A would become a line feed, so a head is made
 * of lines that were checked one by one, and this is the one place that makes them: what a connection writes is of the
 * type `HeadLines`, which nothing else gives.
 */
import { GatewayError } from '../errors.js';
import { tokenBytes } from './head.js';

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

/** The names and values of header lines. */
export function fieldsOf(lines: HeadLines): readonly (readonly [string, string])[] {
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
