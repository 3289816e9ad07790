import { randomBytes } from 'node:crypto';
import type { Writable } from './head.js';

/**
 * What the ids of this process's requests begin with. Ids are unique, not secret: this and a counter, so that whoever
 * keeps many of them can keep numbers.
 */
export const requestSeries = `req_${randomBytes(9).toString('hex')}`;

/** Hex digits that an id ends with: those of its number. */
export const idDigits = 8;

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
