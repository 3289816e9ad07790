import { COLON, CR, LF, SPACE, TAB, ZERO } from '../wire/bytes.js';
/** Parses one answer: its head, then its body by the framing of RFC 9112 section 6.3. No I/O. */
import { ChunkedState, decodeChunked } from '../wire/chunked.js';
import { asksToClose, initialOf, isBodyless, maxHeadBytes, textBytes, tokenBytes } from '../wire/head.js';

/** Maximum number of interim answers (1xx) before the final one. */
const maxInterim = 10;

type BodyKind = 'length' | 'chunked' | 'close';

export class AnswerReader {
  /** Offset of the first byte that the last successful `readHead` did not consume. */
  next = 0;
  /** Offset of the payload that the last `readBody` found. */
  payloadStart = 0;
  /** True once the answer is complete. */
  done = false;
  /** True when bytes followed the complete answer: the connection must never be used again. */
  leftover = false;
  /** Why the answer was refused, or null. */
  problem: string | null = null;

  #toHead = false;
  #mayUpgrade = false;
  #interim = 0;
  #kind: BodyKind = 'close';
  #remaining = 0;
  readonly #chunked = new ChunkedState();
  /** Start of a head that did not arrive in one read. */
  #partial: Buffer | null = null;
  #partialLength = 0;

  /**
   * Prepares for the next answer.
   * @param toHead true when the request is a HEAD
   * @param mayUpgrade true when the request asks for another protocol, so that 101 is a final answer
   */
  begin(toHead: boolean, mayUpgrade = false): void {
    this.next = 0;
    this.payloadStart = 0;
    this.done = false;
    this.leftover = false;
    this.problem = null;
    this.#toHead = toHead;
    this.#mayUpgrade = mayUpgrade;
    this.#interim = 0;
    this.#kind = 'close';
    this.#remaining = 0;
    this.#partial = null;
    this.#partialLength = 0;
  }

  /**
   * Continues to parse the head, skipping interim answers.
   * @returns the head once it is complete; null until then, or when it is refused (`problem` is set)
   */
  readHead(buffer: Buffer, end: number): ParsedHead | null {
    let at = 0;
    for (;;) {
      const head =
        this.#partial === null
          ? parseHead(buffer, at, end, this.#toHead)
          : this.#continueHead(this.#partial, buffer, at, end);
      if (head === null) {
        if (this.#partial === null && at < end) this.#keep(buffer, at, end);
        return null;
      }
      if (typeof head === 'string') return this.#refuse(head);
      at = this.#partial === null ? head.end : at + head.end - this.#partialLength;
      this.#partial = null;
      if (head.status >= 200 || (head.status === 101 && this.#mayUpgrade)) {
        this.next = at;
        this.#enterBody(head);
        return head;
      }
      if (head.status === 101) return this.#refuse('switch of protocols that was not asked for');
      // HTTP/1.0 has no interim answers, and nothing can follow one that closes the connection.
      if (!head.reusable) return this.#refuse('interim answer on a connection that closes');
      if (++this.#interim > maxInterim) return this.#refuse('too many interim answers');
    }
  }

  /**
   * Continues to parse the body. The data of chunks is moved together inside the buffer.
   * @returns the number of payload bytes, which begin at `payloadStart`, or -1 when the body is malformed
   */
  readBody(buffer: Buffer, start: number, end: number): number {
    const available = end - start;
    this.payloadStart = start;
    if (this.done) {
      if (available > 0) this.leftover = true;
      return 0;
    }
    switch (this.#kind) {
      case 'length': {
        const length = Math.min(available, this.#remaining);
        this.#remaining -= length;
        if (this.#remaining === 0) this.done = true;
        if (length < available) this.leftover = true;
        return length;
      }
      case 'chunked': {
        const chunked = this.#chunked;
        const length = decodeChunked(chunked, buffer, start, end);
        this.payloadStart = chunked.payloadStart;
        this.done = chunked.done;
        this.problem = chunked.problem;
        if (chunked.consumed < end) this.leftover = true;
        return length;
      }
      default:
        return available;
    }
  }

  /** Called when the peer has ended its side. @returns true when that completes the answer */
  endOfStream(): boolean {
    if (this.#kind === 'close') this.done = true;
    return this.done;
  }

  #enterBody(head: ParsedHead): void {
    if (head.chunked) {
      this.#kind = 'chunked';
      this.#chunked.reset();
    } else if (head.contentLength > 0) {
      this.#kind = 'length';
      this.#remaining = head.contentLength;
    } else if (head.contentLength === 0) {
      this.done = true;
    } else {
      this.#kind = 'close';
    }
  }

  #keep(buffer: Buffer, start: number, end: number): void {
    this.#partial = Buffer.allocUnsafeSlow(maxHeadBytes);
    this.#partialLength = buffer.copy(this.#partial, 0, start, end);
  }

  /**
   * Adds bytes to a head that began in an earlier read. Its `end` is an offset in `partial`; the bytes after the head
   * are read from `buffer`, not from `partial`.
   */
  #continueHead(partial: Buffer, buffer: Buffer, start: number, end: number): ParsedHead | string | null {
    const before = this.#partialLength;
    const length = before + buffer.copy(partial, before, start, end);
    // Only a line feed can complete a line. This keeps a head that arrives byte by byte from being parsed for every
    // byte.
    const feed = partial.indexOf(LF, before);
    const worth = (feed !== -1 && feed < length) || length === maxHeadBytes;
    const head = worth ? parseHead(partial, 0, length, this.#toHead) : null;
    if (head === null) this.#partialLength = length;
    return head;
  }

  #refuse(problem: string): null {
    this.problem = problem;
    return null;
  }
}

/** Maximum number of field lines in a head. */
export const maxFields = 100;

/** The head of an answer. Names are lower-case, and values have no surrounding white space. */
export class ParsedHead {
  status = 0;
  /** Minor version: 0 or 1. */
  minor = 1;
  /** The field lines as received. They are parsed when `fields` is first read, which most answers never need. */
  lines = '';
  /**
   * Initial letters of the field names, for `mayHave`; all letters until the head is parsed. Governing fields have
   * members of their own and are not included.
   */
  initials = -1;
  /** Length of the body if the framing gives it (0 for answers without a body), else -1. */
  contentLength = -1;
  /** True when the body is chunked. */
  chunked = false;
  /** False when the connection must not carry another request. */
  reusable = true;
  /** `timeout` of the `keep-alive` field in seconds, or -1. */
  keepAliveSeconds = -1;
  /** Value of the `content-encoding` field, lower-case, or null; empty when there are several such fields. */
  contentCoding: string | null = null;
  /** First value of `content-type`, or null. */
  contentType: string | null = null;
  /** Offset in the buffer of the first byte after the head. */
  end = 0;
  #fields: string[] | null = null;

  /** `[name, value, name, value, …]`, in the order of arrival. */
  get fields(): string[] {
    this.#fields ??= cutFields(this.lines);
    return this.#fields;
  }

  /**
   * Whether the name of a field that is not governing may begin with one of these letters.
   * @param initials as returned by `initialsOf`
   */
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

const protocolName = Buffer.from('HTTP/1.');

/** Splits field lines that `readFields` has validated. */
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
  return byte === SPACE || byte === TAB;
}

/**
 * Parses a response head from `buffer[start, end)`. Bytes beyond `end` may have any value.
 * Complete lines are checked even while the head is incomplete, so that a peer that speaks another protocol is detected
 * immediately.
 * @param toHead true when the request was a HEAD, whose answer has no body whatever its fields say
 * @returns the head; null when more bytes are needed; or the reason why the head is refused
 */
export function parseHead(
  buffer: Buffer,
  start: number,
  end: number,
  toHead: boolean,
): ParsedHead | string | null {
  const limit = Math.min(end, start + maxHeadBytes);
  // The end of the last complete line. It may lie in the body: a complete head ends before it.
  const stop = buffer.lastIndexOf(LF, limit - 1) + 1;
  const unfinished = limit - start === maxHeadBytes ? 'head too large' : null;
  if (limit === start) return unfinished;

  let at = start;
  // Another protocol may send no line feed. Checking the first bytes avoids waiting until the head is too large.
  for (let i = 0; i < protocolName.length && at < limit; i++, at++) {
    if (buffer[at] !== protocolName[i]) return 'not an HTTP/1 status line';
  }
  if (stop <= start) return unfinished;
  const head = new ParsedHead();
  head.minor = (buffer[at] as number) - ZERO;
  if (head.minor !== 0 && head.minor !== 1) return 'unknown HTTP version';
  if (buffer[at + 1] !== SPACE) return 'malformed status line';
  at += 2;
  let status = 0;
  for (let i = 0; i < 3; i++, at++) {
    const digit = (buffer[at] as number) - ZERO;
    if (digit < 0 || digit > 9) return 'malformed status code';
    status = status * 10 + digit;
  }
  if (status < 100) return 'malformed status code';
  head.status = status;
  // The grammar requires the space after the code, but servers without a reason phrase omit it.
  if (buffer[at] === SPACE) {
    at++;
    while (textBytes[buffer[at] as number] === 1) at++;
  }
  if (buffer[at] !== CR || buffer[at + 1] !== LF) return 'malformed status line';
  at += 2;
  return readFields(head, buffer, at, stop, toHead) ?? unfinished;
}

/**
 * Parses field lines. The range always ends with a line feed, which stops the inner loops: they need no bounds checks.
 * Only the values of governing fields are extracted.
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
  while (at < stop) {
    if (buffer[at] === CR) {
      if (buffer[at + 1] !== LF) return 'bare carriage return';
      head.lines = buffer.toString('latin1', from, at);
      head.initials = initials;
      head.end = at + 2;
      return decideFraming(head, toHead);
    }
    const nameStart = at;
    while ((tokenBytes[buffer[at] as number] as number) > 0) at++;
    const nameEnd = at;
    if (nameEnd === nameStart || buffer[nameEnd] !== COLON) return 'malformed field name';
    at++;
    while (isBlank(buffer[at])) at++;
    const valueStart = at;
    while (textBytes[buffer[at] as number] === 1) at++;
    if (buffer[at] !== CR || buffer[at + 1] !== LF) return 'malformed field value';
    let valueEnd = at;
    while (valueEnd > valueStart && isBlank(buffer[valueEnd - 1])) valueEnd--;
    if (++count > maxFields) return 'too many fields';
    const name = governingName(buffer, nameStart, nameEnd);
    if (name === null) initials |= initialOf(buffer[nameStart] as number);
    else {
      // A tab is white space here as well (RFC 9110 section 5.6.3), but llhttp treats it as part of the value of these
      // two fields. An answer that two parsers frame differently is refused.
      if (valueEnd < at && governsFraming(name) && buffer.subarray(valueEnd, at).includes(TAB))
        return 'tab after a framing field';
      const problem =
        name === 'content-length'
          ? heedLength(head, decimalAt(buffer, valueStart, valueEnd))
          : heed(head, name, valueText(buffer, valueStart, valueEnd));
      if (problem !== null) return problem;
    }
    at += 2;
  }
  return null;
}

/** The governing fields: those that determine the connection and the framing, coding and type of the body. */
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
/** Frequent values. Sharing one string for each saves an allocation per head and makes comparisons fast. */
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

/** Returns the name of a governing field, ignoring case; null for any other field. */
function governingName(buffer: Buffer, start: number, end: number): GoverningName | null {
  const length = end - start;
  if (length >= governingNames.length) return null;
  const names = governingNames[length] as readonly Spelled<GoverningName>[];
  next: for (let i = 0; i < names.length; i++) {
    const { text, bytes } = names[i] as Spelled<GoverningName>;
    // Among the bytes of a token, only letters have a counterpart that differs in this bit alone.
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

/** Records a governing field. @returns why the head is refused, or null */
function heed(
  head: ParsedHead,
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
      if (head.chunked) return 'repeated transfer-encoding';
      if (head.minor === 0) return 'transfer-encoding in an HTTP/1.0 answer';
      if (value.toLowerCase() !== 'chunked') return 'transfer coding other than chunked';
      head.chunked = true;
      return null;
  }
}

/** Records the length of the body, where -1 stands for an invalid one. @returns why the head is refused, or null */
function heedLength(head: ParsedHead, length: number): string | null {
  if (head.contentLength !== -1) return 'repeated content-length';
  head.contentLength = length;
  return length === -1 ? 'malformed content-length' : null;
}

/** Determines how the body ends (RFC 9112 section 6.3). */
function decideFraming(head: ParsedHead, toHead: boolean): ParsedHead | string {
  if (head.chunked && head.contentLength !== -1) return 'transfer-encoding together with content-length';
  if (head.minor === 0) head.reusable = false;
  if (toHead || isBodyless(head.status)) {
    head.contentLength = 0;
    head.chunked = false;
  } else if (!head.chunked && head.contentLength === -1) {
    // Such a body ends with the connection.
    head.reusable = false;
  }
  return head;
}

/** Parses decimal digits. Returns -1 for anything else, and for numbers that are not exact as a double. */
function decimalAt(bytes: Uint8Array, start: number, end: number): number {
  if (start === end) return -1;
  let number = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] as number) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
    if (number > Number.MAX_SAFE_INTEGER) return -1;
  }
  return number;
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
