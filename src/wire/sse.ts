import { type JsonObject, parseObject } from './json.js';

const LF = 10;
const CR = 13;
const firstBytes = 4096;
/** Length of CRLF CRLF without the last byte. */
const longestBegun = 3;
const nothing = Buffer.alloc(0);

/**
 * Returns the offset just after the blank line of the last complete event in `bytes[from, to)`, or `from` if no event
 * ends there. A blank line is two consecutive line ends, each LF, CRLF or CR (the SSE specification, "Parsing an event
 * stream"). Searches from the end, which costs almost nothing if the bytes end with an event.
 * A blank line may begin up to three bytes before a split: callers that continue after one step back that far.
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

/** Returns the offset of the event that ends at `end`; 0 also for an event whose start is missing. */
export function eventStart(bytes: Buffer, end: number): number {
  return lastEventEnd(bytes, 0, Math.max(0, end - 2));
}

/**
 * How many of a stream's last events to check for how it ended: comments, pings, the usage, sources and `[DONE]` may
 * follow the event that says it.
 */
export const finalEvents = 4;

/** Yields the last events of a stream, in reverse order. The bytes may begin within an event. */
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

/** Returns the offset just after the blank line of the first event in `bytes[from, to)`, or -1. */
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

/** Returns the offset just after the blank line of the event around `at`, or the length if it has not ended. */
export function eventEnd(bytes: Buffer, at: number): number {
  const end = firstEventEnd(bytes, at, bytes.length);
  return end === -1 ? bytes.length : end;
}

/** Returns the length of the event around `at`, or of the one that ends there. */
export function eventLength(bytes: Buffer, at: number): number {
  const start = eventStart(bytes, at);
  return eventEnd(bytes, start) - start;
}

/**
 * Parses one event. Returns its `event` field and its `data`, whose lines are joined by LF as the specification
 * requires. `data` is null for an event without a data line, such as a comment or a lone `event:`.
 */
export function parseEvent(text: string): { readonly event: string | null; readonly data: string | null } {
  let event: string | null = null;
  let data: string | null = null;
  const hasReturns = text.includes('\r');
  let start = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  let colon = 0;
  while (start < text.length) {
    const end = endOfLine(text, start, hasReturns);
    // Searched again only once it has been passed: many lines may have no colon.
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

/** Returns the data of the event `bytes[start, end)` if it is a JSON object, else null. */
export function eventObject(bytes: Buffer, start: number, end: number): JsonObject | null {
  return parseObject(parseEvent(bytes.toString('utf8', start, end)).data ?? '');
}

/**
 * Finds the end of a line. The native search is several times as fast as a loop, but finds only one kind of line end.
 */
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
 * Cuts a byte stream into runs of whole events, however the input is split. At most `limit` bytes of an incomplete
 * event are held back. Beyond this, the stream is passed on unchanged until the event ends.
 */
export class EventRuns {
  readonly #limit: number;
  #held: Buffer | null = null;
  #length = 0;
  #overlong = false;
  /** The last bytes of an overlong event that were passed on, in which a blank line may have begun. */
  #last: Buffer = nothing;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Number of bytes of an incomplete event that are held back. */
  get held(): number {
    return this.#length;
  }

  /** True when a part of an incomplete event was passed on because the event exceeded the limit. */
  get overlong(): boolean {
    return this.#overlong;
  }

  /**
   * Adds bytes.
   * @param chunk valid only during the call
   * @returns whole events in one piece, valid only until the next call, or null if no event has ended
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

  /** Passes bytes on unchanged up to the end of an event, since nothing of an overlong event is held. */
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

  /** Returns what is held after the last byte: the start of an event that did not end, or null. */
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

  /** Returns the first `end` held bytes. The rest moves to a new buffer, so that both stay valid. */
  #take(end: number): Buffer {
    const all = (this.#held as Buffer).subarray(0, this.#length);
    this.#held = null;
    this.#length = 0;
    if (end < all.length) this.#hold(all, end);
    return all.subarray(0, end);
  }
}
