import { randomBytes } from 'node:crypto';
import { type HeadLines, joinLines, type Writable, writableLinesOf } from './head.js';

/**
 * What the ids of this process's requests begin with. Ids are unique, not secret: this and a counter, so that whoever
 * keeps many of them can keep numbers.
 */
export const requestSeries = `req_${randomBytes(9).toString('hex')}`;

/** Hex digits that an id ends with: those of its number. */
const idDigits = 8;

const bytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

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
    begun = { series, half, text: [series, bytes[half >> 8], bytes[half & 0xff]].join('') };
  return (begun.text + ((bytes[(number >> 8) & 0xff] as string) + bytes[number & 0xff])) as Writable;
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
