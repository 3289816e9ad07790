import { COLON, CR, LF, SEMICOLON } from './bytes.js';
/** The chunked transfer coding (RFC 9112 section 7.1), decoded in place. No I/O; the caller holds the state. */
import { maxHeadBytes, textBytes, tokenBytes } from './head.js';

/** Maximum length of a chunk-size line, including its extensions. */
export const maxSizeLine = 256;

/** Below this many bytes, a loop is faster than a native move. */
const shortMove = 48;

/** Digits of the size of a chunk of up to 64 KB, and the maximum number of bytes before its data with such a size. */
const usualDigits = 4;
const usualSizeBytes = usualDigits + 4;

/** By byte: the value of a hexadecimal digit, or 255. */
const hexValues = new Uint8Array(256).fill(255);
for (let value = 0; value < 16; value++) {
  const digit = value.toString(16);
  hexValues[digit.charCodeAt(0)] = value;
  hexValues[digit.toUpperCase().charCodeAt(0)] = value;
}

// The phases, in the order of a body's bytes.
const sizeStart = 0;
const sizeDigits = 1;
const extension = 2;
const sizeLf = 3;
const data = 4;
const dataCr = 5;
const dataLf = 6;
const trailerStart = 7;
const trailerName = 8;
const trailerValue = 9;
const trailerLf = 10;
const lastLf = 11;

/** State of a chunked body between two reads, and the result of the last call of `decodeChunked`. */
export class ChunkedState {
  phase = sizeStart;
  /** While a size is read: the size so far. While data is read: the number of bytes that remain. */
  size = 0;
  /** Number of bytes of the current size line, or of all trailers. */
  lineBytes = 0;
  /** Offset of the payload that the last call found. */
  payloadStart = 0;
  /** Offset after the last byte that the last call consumed. */
  consumed = 0;
  /** True once the last byte of the body has been read. */
  done = false;
  /** Why the body was refused, or null. */
  problem: string | null = null;

  /** Prepares the state for the next body. */
  reset(): void {
    this.phase = sizeStart;
    this.size = 0;
    this.lineBytes = 0;
    this.payloadStart = 0;
    this.consumed = 0;
    this.done = false;
    this.problem = null;
  }
}

/**
 * Decodes `buffer[start, end)`. Payload bytes are moved together, so that a read yields one slice for any number of
 * chunks: `buffer[state.payloadStart, state.payloadStart + result)`. Bytes of the range may be overwritten.
 * When `state.done` is set, bytes from `state.consumed` on do not belong to the body.
 * White space around the size is refused, as in llhttp, although the grammar of RFC 9112 allows it before an extension.
 * @returns the number of payload bytes, or -1 when the body is malformed (`state.problem` contains the reason)
 */
export function decodeChunked(state: ChunkedState, buffer: Buffer, start: number, end: number): number {
  let at = start;
  let payloadEnd = -1;
  state.payloadStart = start;
  while (at < end) {
    if (state.phase === data) {
      const length = Math.min(state.size, end - at);
      if (payloadEnd === -1) {
        state.payloadStart = at;
        payloadEnd = at + length;
      } else {
        move(buffer, payloadEnd, at, length);
        payloadEnd += length;
      }
      at += length;
      state.size -= length;
      if (state.size === 0) {
        state.phase = dataCr;
        at = nextData(state, buffer, at, end);
      }
      continue;
    }
    const problem = step(state, buffer[at] as number);
    if (problem !== null) {
      state.problem = problem;
      return -1;
    }
    at++;
    if (state.done) break;
  }
  state.consumed = at;
  return payloadEnd === -1 ? 0 : payloadEnd - state.payloadStart;
}

/**
 * Skips what almost always separates two pieces of data, if it has arrived completely: a size of one to four digits,
 * and two line ends. This takes a third of the time of reading byte by byte. Anything else is left to `step`.
 * @returns the offset of the next data, or `at`
 */
function nextData(state: ChunkedState, buffer: Buffer, at: number, end: number): number {
  if (end - at < usualSizeBytes || buffer[at] !== CR || buffer[at + 1] !== LF) return at;
  const digits = at + 2;
  let size = 0;
  let next = digits;
  for (; next < digits + usualDigits; next++) {
    const digit = hexValues[buffer[next] as number] as number;
    if (digit === 255) break;
    size = size * 16 + digit;
  }
  if (size === 0 || buffer[next] !== CR || buffer[next + 1] !== LF) return at;
  state.size = size;
  state.lineBytes = 0;
  state.phase = data;
  return next + 2;
}

function move(buffer: Buffer, target: number, from: number, length: number): void {
  if (length >= shortMove) {
    buffer.copyWithin(target, from, from + length);
    return;
  }
  for (let i = 0; i < length; i++) buffer[target + i] = buffer[from + i] as number;
}

/** Processes one byte that is not payload. */
function step(state: ChunkedState, byte: number): string | null {
  switch (state.phase) {
    case sizeStart: {
      const digit = hexValues[byte] as number;
      if (digit === 255) return 'malformed chunk size';
      state.size = digit;
      state.lineBytes = 1;
      state.phase = sizeDigits;
      return null;
    }
    case sizeDigits: {
      if (byte === CR) {
        state.phase = sizeLf;
        return null;
      }
      if (++state.lineBytes > maxSizeLine) return 'chunk-size line too long';
      const digit = hexValues[byte] as number;
      if (digit !== 255) {
        state.size = state.size * 16 + digit;
        return state.size > Number.MAX_SAFE_INTEGER ? 'chunk too large' : null;
      }
      if (byte !== SEMICOLON) return 'malformed chunk size';
      state.phase = extension;
      return null;
    }
    case extension:
      if (byte === CR) state.phase = sizeLf;
      else if (++state.lineBytes > maxSizeLine) return 'chunk-size line too long';
      else if (textBytes[byte] === 0) return 'malformed chunk extension';
      return null;
    case sizeLf:
      if (byte !== LF) return 'malformed chunk-size line';
      state.lineBytes = 0;
      state.phase = state.size === 0 ? trailerStart : data;
      return null;
    case dataCr:
      if (byte !== CR) return 'chunk longer than its size';
      state.phase = dataLf;
      return null;
    case dataLf:
      if (byte !== LF) return 'malformed end of a chunk';
      state.phase = sizeStart;
      return null;
    default:
      return trailerStep(state, byte);
  }
}

/** Processes one byte of the trailer section, whose syntax is checked and which is otherwise ignored. */
function trailerStep(state: ChunkedState, byte: number): string | null {
  if (++state.lineBytes > maxHeadBytes) return 'trailers too large';
  switch (state.phase) {
    case trailerStart:
      if (byte === CR) state.phase = lastLf;
      else if (tokenBytes[byte] !== 0) state.phase = trailerName;
      else return 'malformed trailer name';
      return null;
    case trailerName:
      if (byte === COLON) state.phase = trailerValue;
      else if (tokenBytes[byte] === 0) return 'malformed trailer name';
      return null;
    case trailerValue:
      if (byte === CR) state.phase = trailerLf;
      else if (textBytes[byte] === 0) return 'malformed trailer value';
      return null;
    case trailerLf:
      if (byte !== LF) return 'malformed trailer value';
      state.phase = trailerStart;
      return null;
    default:
      if (byte !== LF) return 'malformed end of the body';
      state.done = true;
      return null;
  }
}
