/** Heads of requests to upstreams that differ from each other by the number of their id alone. */
import { type HeadLines, joinLines, writableLinesOf } from './head.js';
import { idDigits, requestIdOf, requestSeries } from './request-id.js';

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
