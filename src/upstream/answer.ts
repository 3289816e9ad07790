/** Reads the bytes of one answer: its head, then its body by the framing of RFC 9112 section 6.3. No I/O. */
import { ChunkedState, decodeChunked } from '../wire/chunked.js';
import { maxHeadBytes, type ParsedHead, parseHead } from '../wire/head.js';

/** More interim answers (1xx) than this before the answer itself are refused. */
const maxInterim = 10;

const lf = 0x0a;

type BodyKind = 'length' | 'chunked' | 'close';

export class AnswerReader {
  /** Offset of the first byte that the last successful `readHead` did not use. */
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
  /** Start of a head that did not come in one read. */
  #partial: Buffer | null = null;
  #partialLength = 0;

  /**
   * Makes ready for another answer.
   * @param toHead true when the request is a HEAD
   * @param mayUpgrade true when the request asks for another protocol: 101 is an answer then
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
   * Reads on in the head, skipping interim answers.
   * @returns the head once it is complete; null while it is not, or when it is refused (`problem` is set).
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
      // HTTP/1.0 knows none, and nothing can follow one that closes.
      if (!head.reusable) return this.#refuse('interim answer on a connection that closes');
      if (++this.#interim > maxInterim) return this.#refuse('too many interim answers');
    }
  }

  /**
   * Reads on in the body; chunks are moved together inside the buffer.
   * @returns the number of payload bytes, which begin at `payloadStart`, or -1 when the body is malformed.
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

  /** The peer has ended its side. @returns true when that completes the answer. */
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
   * Adds bytes to a head begun in an earlier read. Its `end` counts from the start of `partial`; the bytes after it
   * are read from `buffer`, not from here.
   */
  #continueHead(partial: Buffer, buffer: Buffer, start: number, end: number): ParsedHead | string | null {
    const before = this.#partialLength;
    const length = before + buffer.copy(partial, before, start, end);
    // Only a new line feed can complete a line: a head that comes byte by byte is not read again for every byte.
    const feed = partial.indexOf(lf, before);
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
