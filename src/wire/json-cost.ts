import { GatewayError } from '../errors.js';
import { endOfString } from './json-skip.js';

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
