import type { HttpResponse } from 'uWebSockets.js';

/** State of a response: more can be written, bytes wait for the client, or all were written. */
export type SizedState = 'flowing' | 'waiting' | 'complete';

/** Bytes that uWS buffers inside `cork`, without reporting whether the socket took them. */
const corkedBytes = 16 * 1024;

/**
 * A response of known length, written with `tryEnd`. uWS buffers none of it: what the socket does not take waits here.
 * uWS's response object must not be touched after `complete`.
 */
export class SizedAnswer {
  readonly length: number;
  readonly #response: HttpResponse;
  /** Bytes that uWS has taken. */
  #offset = 0;
  #complete = false;
  #rest: Buffer | null = null;
  /** Pieces that were written after `#rest`. */
  #later: Buffer[] | null = null;

  constructor(response: HttpResponse, length: number) {
    this.#response = response;
    this.length = length;
  }

  /**
   * Sends a piece. All pieces together must not be longer than the response.
   * @param writeHead writes the head before the first piece; null for any other
   */
  write(chunk: Buffer, writeHead: (() => void) | null): SizedState {
    if (this.#rest !== null) {
      this.#later ??= [];
      this.#later.push(Buffer.from(chunk));
      return 'waiting';
    }
    const { length } = chunk;
    // uWS always takes small pieces inside a cork, and closes a response that seems complete if it has not drained
    // after ten seconds. Its last byte is therefore written alone: uWS does not take that while anything before it
    // waits.
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

  /** Keeps the part of a whole response that uWS has not taken when it was offered before. */
  queue(body: Buffer): void {
    this.#offset = this.#response.getWriteOffset();
    this.#rest = Buffer.from(body.subarray(this.#offset));
  }

  /**
   * Sends as much of what waits as the socket takes. To be called only in `onWritable` of uWS, where nothing is corked.
   */
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

  /** @returns the number of bytes that were taken */
  #offer(bytes: Buffer): number {
    this.#complete = this.#response.tryEnd(bytes, this.length)[1];
    if (this.#complete) return bytes.length;
    const before = this.#offset;
    this.#offset = this.#response.getWriteOffset();
    return this.#offset - before;
  }
}
