import { type JsonObject, parseObject } from './json.js';

const LF = 10;
const CR = 13;
const firstBytes = 4096;
/** CR and LF twice, without the last of them. */
const longestBegun = 3;
const nothing = Buffer.alloc(0);

/**
 * Where the last complete event of `bytes[from, to)` ends: just past its blank line, or `from` when no event
 * ends there. A blank line is two line ends in a row, each LF, CRLF or CR (the SSE specification, "Parsing an
 * event stream"). Looks from the end, so it costs next to nothing when the bytes end with an event.
 * `from` may cut into a blank line's first line end by at most three bytes: callers that go on after a split
 * step back that far.
 */
export function lastEventEnd(bytes: Buffer, from: number, to: number): number {
  for (let i = to - 1; i > from; i--) {
    const byte = bytes[i];
    if (byte === LF) {
      const before = bytes[i - 1];
      if (before === LF) return i + 1;
      if (before === CR && i - 2 >= from && (bytes[i - 2] === LF || bytes[i - 2] === CR)) return i + 1;
    } else if (byte === CR && bytes[i - 1] === CR) {
      return i + 1;
    }
  }
  return from;
}

/** Where the event begins that ends at `end`; 0 also for one whose beginning is not there. */
export function eventStart(bytes: Buffer, end: number): number {
  return lastEventEnd(bytes, 0, Math.max(0, end - 2));
}

/**
 * How many of a stream's last events tell how it ended: comments, pings, the usage, sources and `[DONE]` may follow the one
 * that says it.
 */
export const finalEvents = 4;

/** The last events of a stream, the very last one first. The bytes may begin within one. */
export function* lastEvents(
  bytes: Buffer,
  most = finalEvents,
): Generator<{ readonly start: number; readonly end: number }, void, undefined> {
  for (let end = bytes.length, count = 0; end > 0 && count < most; count++) {
    const start = eventStart(bytes, end);
    yield { start, end };
    end = start;
  }
}

/** Where the first event of `bytes[from, to)` ends: just past its blank line, or -1. */
export function firstEventEnd(bytes: Buffer, from: number, to: number): number {
  for (let i = from; i < to; i++) {
    const byte = bytes[i];
    if (byte !== LF && byte !== CR) continue;
    let next = i + 1;
    if (byte === CR && bytes[next] === LF && next < to) next++;
    if (next >= to) return -1;
    if (bytes[next] === LF) return next + 1;
    if (bytes[next] === CR) return next + 1 < to && bytes[next + 1] === LF ? next + 2 : next + 1;
    i = next - 1;
  }
  return -1;
}

/** Where the event around `at` ends: just past its blank line, or with the bytes where it has not ended. */
export function eventEnd(bytes: Buffer, at: number): number {
  const end = firstEventEnd(bytes, at, bytes.length);
  return end === -1 ? bytes.length : end;
}

/**
 * The `data` of one event, its lines joined by LF as the specification says, and its `event` field.
 * `data` is null for an event without a data line (a comment, or a bare `event:`).
 */
export function parseEvent(text: string): { readonly event: string | null; readonly data: string | null } {
  let event: string | null = null;
  let data: string | null = null;
  const hasReturns = text.includes('\r');
  let start = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  let colon = 0;
  while (start < text.length) {
    const end = endOfLine(text, start, hasReturns);
    // Not searched again before it is passed: most lines of a text may have none.
    if (colon !== -1 && colon <= start) colon = text.indexOf(':', start);
    if (end > start && colon !== start) {
      const named = colon !== -1 && colon < end;
      const field = text.slice(start, named ? colon : end);
      let valueStart = named ? colon + 1 : end;
      if (named && text.charCodeAt(valueStart) === 32) valueStart++;
      const value = text.slice(valueStart, end);
      if (field === 'data') data = data === null ? value : `${data}\n${value}`;
      else if (field === 'event') event = value;
    }
    start = text.charCodeAt(end) === CR && text.charCodeAt(end + 1) === LF ? end + 2 : end + 1;
  }
  return { event, data };
}

/** The data of the event that is `bytes[start, end)` where that is a JSON object; null for any other, and for none. */
export function eventObject(bytes: Buffer, start: number, end: number): JsonObject | null {
  return parseObject(parseEvent(bytes.toString('utf8', start, end)).data ?? '');
}

/** The native search is several times as fast as a loop; it knows one kind of line end. */
function endOfLine(text: string, start: number, hasReturns: boolean): number {
  if (!hasReturns) {
    const end = text.indexOf('\n', start);
    return end === -1 ? text.length : end;
  }
  let end = start;
  while (end < text.length && text.charCodeAt(end) !== LF && text.charCodeAt(end) !== CR) end++;
  return end;
}

/**
 * Cuts a byte stream into runs of whole events, at any split of the input. What is held back of an unfinished
 * event is bounded: past `limit` bytes the stream is passed on as it comes until the event ends.
 */
export class EventRuns {
  readonly #limit: number;
  #held: Buffer | null = null;
  #length = 0;
  #overlong = false;
  /** The last bytes of an overlong event that were given out: a blank line may have begun in them. */
  #last: Buffer = nothing;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Bytes of an unfinished event that are held back. */
  get held(): number {
    return this.#length;
  }

  /** True when an unfinished event was passed on in part because it exceeded the limit. */
  get overlong(): boolean {
    return this.#overlong;
  }

  /**
   * @param chunk the next bytes; valid only during the call
   * @returns whole events in one piece, valid only until the next call, or null when no event has ended
   */
  push(chunk: Buffer): Buffer | null {
    if (chunk.length === 0) return null;
    if (this.#overlong) return this.#pushPart(chunk);
    const length = this.#length;
    if (length === 0) {
      const end = lastEventEnd(chunk, 0, chunk.length);
      if (end === chunk.length) return chunk;
      this.#hold(chunk, end);
      return end === 0 ? this.#spill() : chunk.subarray(0, end);
    }
    this.#hold(chunk, 0);
    const all = this.#held as Buffer;
    const from = Math.max(0, length - longestBegun);
    const end = lastEventEnd(all, from, this.#length);
    return end === from ? this.#spill() : this.#take(end);
  }

  /** Nothing of an overlong event is held, so what comes is passed on as it is, up to where an event ends. */
  #pushPart(chunk: Buffer): Buffer {
    let end = lastEventEnd(chunk, 0, chunk.length);
    if (end === 0) {
      const before = this.#last.length;
      const around = Buffer.concat([this.#last, chunk.subarray(0, longestBegun)]);
      end = Math.max(0, lastEventEnd(around, 0, around.length) - before);
      if (end === 0) {
        this.#noteLast(chunk.length > longestBegun ? chunk : around);
        return chunk;
      }
    }
    this.#overlong = false;
    if (end === chunk.length) return chunk;
    this.#hold(chunk, end);
    return chunk.subarray(0, end);
  }

  /** What is left after the last byte: the start of an event that never ended, or null. */
  rest(): Buffer | null {
    return this.#length === 0 ? null : this.#take(this.#length);
  }

  #spill(): Buffer | null {
    if (this.#length <= this.#limit) return null;
    this.#overlong = true;
    const part = this.#take(this.#length);
    this.#noteLast(part);
    return part;
  }

  #noteLast(part: Buffer): void {
    this.#last = Buffer.from(part.subarray(-longestBegun));
  }

  #hold(chunk: Buffer, from: number): void {
    const size = chunk.length - from;
    const needed = this.#length + size;
    if (this.#held === null || needed > this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, firstBytes, this.#length * 2));
      if (this.#held !== null) this.#held.copy(larger, 0, 0, this.#length);
      this.#held = larger;
    }
    chunk.copy(this.#held, this.#length, from);
    this.#length = needed;
  }

  /** Gives out the first `end` held bytes; the rest moves into a buffer of its own, so that both stay valid. */
  #take(end: number): Buffer {
    const all = (this.#held as Buffer).subarray(0, this.#length);
    this.#held = null;
    this.#length = 0;
    if (end < all.length) this.#hold(all, end);
    return all.subarray(0, end);
  }
}
