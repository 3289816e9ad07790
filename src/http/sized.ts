import type { HttpResponse } from 'uWebSockets.js';

/** How an answer stands: the client takes it, or has to take what `waiting` bytes there are, or has been given all. */
export type SizedState = 'flowing' | 'waiting' | 'complete';

/** uWS collects so much inside `cork`, and does not tell whether the socket took it. */
const corkedBytes = 16 * 1024;

/**
 * An answer of known length on its way, written with `tryEnd`: uWS keeps nothing of it, what the socket does not take
 * waits here. The response must not be touched after `complete`.
 */
export class SizedAnswer {
  readonly length: number;
  readonly #response: HttpResponse;
  /** Bytes that uWS has taken. */
  #offset = 0;
  #complete = false;
  #rest: Buffer | null = null;
  /** What was written after it. */
  #later: Buffer[] | null = null;

  constructor(response: HttpResponse, length: number) {
    this.#response = response;
    this.length = length;
  }

  /**
   * Sends a piece; all of them together must not be longer than the answer.
   * @param writeHead for the first piece, else null
   */
  write(chunk: Buffer, writeHead: (() => void) | null): SizedState {
    if (this.#rest !== null) {
      this.#later ??= [];
      this.#later.push(Buffer.from(chunk));
      return 'waiting';
    }
    const { length } = chunk;
    // What is small is always taken inside a cork, and an answer that seems to be complete is given ten seconds to
    // drain and is cut then. So its last byte goes alone: it is refused as long as anything before it waits.
    const small = length <= corkedBytes;
    let taken = 0;
    this.#response.cork(() => {
      writeHead?.();
      taken = this.#offer(small ? chunk.subarray(0, length - 1) : chunk);
    });
    if (small && taken === length - 1) {
      this.#response.cork(() => {
        taken += this.#offer(chunk.subarray(length - 1));
      });
    }
    if (this.#complete) return 'complete';
    if (taken === length) return 'flowing';
    this.#rest = Buffer.from(chunk.subarray(taken));
    return 'waiting';
  }

  /** Keeps what uWS has not taken of the whole answer, which was offered to it before. */
  queue(body: Buffer): void {
    this.#offset = this.#response.getWriteOffset();
    this.#rest = Buffer.from(body.subarray(this.#offset));
  }

  /** Sends what waits, as far as the client takes it. Only in uWS's `onWritable`, where nothing is corked. */
  flush(): SizedState {
    for (;;) {
      const rest = this.#rest;
      if (rest === null) return 'flowing';
      const taken = this.#offer(rest);
      if (this.#complete) return 'complete';
      if (taken < rest.length) {
        this.#rest = rest.subarray(taken);
        return 'waiting';
      }
      this.#rest = this.#later === null ? null : Buffer.concat(this.#later);
      this.#later = null;
    }
  }

  /** @returns how many of the bytes were taken */
  #offer(bytes: Buffer): number {
    this.#complete = this.#response.tryEnd(bytes, this.length)[1];
    if (this.#complete) return bytes.length;
    const before = this.#offset;
    this.#offset = this.#response.getWriteOffset();
    return this.#offset - before;
  }
}
