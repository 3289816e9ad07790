import { GatewayError } from '../errors.js';
import type { BodySource, ChunkReceiver } from './client-link.js';
import type { RequestHead } from './request-head.js';

/** The exchange of a request body. */
export interface BodyOwner {
  readonly head: Pick<RequestHead, 'contentLength' | 'chunked'>;
  bytesIn: number;
  /** An answer was begun, or none can be any more. */
  readonly isAnswered: boolean;
  /** Its client does not take the answer at the moment. */
  readonly isBlocked: boolean;
  /** More of the body is to come. */
  bodyExpected(): void;
  /** All of it has come. */
  bodyComplete(): void;
  /** @returns room for so many bytes that begins with `start` */
  bodyBuffer(capacity: number, start: Buffer | null): Buffer;
}

/** Takes a request body. Exactly one of the two is called, once, unless the client leaves before. */
export interface BodyReceiver {
  /** The whole body; the receiver owns the buffer. */
  onBody(body: Buffer): void;
  onBodyRefused(error: GatewayError): void;
  /**
   * The body is about to take up so many bytes in all.
   * @returns false when there is no room for them; the receiver has then answered, and is not called again
   */
  hold(bytes: number): boolean;
}

/** Room for a body that is announced as no larger is there from its first bytes on. */
const usualBytes = 512 * 1024;
const firstBytes = 16 * 1024;
/** Room that is too small is doubled, but grows by no more than this. */
const mostAhead = 8 * 1024 * 1024;
const emptyBody: Buffer = Buffer.alloc(0);
const nobody: ChunkReceiver = { onChunk() {}, onShredded() {} };

/**
 * Refuses a body that is announced as larger than `limit` bytes. If the connection goes on it is read and thrown away:
 * when nobody takes what a client sends, uWS cuts it ten seconds after its answer, else only one below 16 KB a second.
 */
export function refuseAnnounced(
  source: BodySource,
  limit: number,
  receiver: Pick<BodyReceiver, 'onBodyRefused'>,
): void {
  source.read(nobody);
  receiver.onBodyRefused(tooLarge(limit));
}

/**
 * Begins to collect a request body of at most `limit` bytes: a usual one into one buffer of the announced size, a larger
 * one, or one of unknown length, into one that grows with what has come. uWS's chunks are valid only in their callback,
 * so this copy is the one that has to be made.
 * @returns null when it is refused by its announced length
 */
export function collectBody(
  exchange: BodyOwner,
  source: BodySource,
  options: CollectOptions,
): BodyCollector | null {
  if (exchange.head.contentLength > options.limit) {
    refuseAnnounced(source, options.limit, options.receiver);
    return null;
  }
  if (exchange.head.chunked) exchange.bodyExpected();
  return new BodyCollector(exchange, source, options);
}

interface CollectOptions {
  readonly limit: number;
  readonly receiver: BodyReceiver;
  /** Nothing is handed on before `resume`, and little is read. */
  readonly waits: boolean;
}

/** A request body on its way into one buffer. */
export class BodyCollector implements ChunkReceiver {
  readonly #exchange: BodyOwner;
  readonly #source: BodySource;
  readonly #limit: number;
  /** Null when nothing more is wanted. */
  #receiver: BodyReceiver | null;
  #body: Buffer = emptyBody;
  #length = 0;
  #complete = false;
  #waits: boolean;
  /** The socket has been stopped. */
  #stopped = false;

  constructor(exchange: BodyOwner, source: BodySource, { limit, receiver, waits }: CollectOptions) {
    this.#exchange = exchange;
    this.#source = source;
    this.#limit = limit;
    this.#receiver = receiver;
    this.#waits = waits;
    source.read(this);
  }

  /** It has waited long enough. */
  resume(): void {
    this.#waits = false;
    this.#go();
    if (this.#complete) this.#deliver();
  }

  /** @returns whether the socket may be read */
  mayRead(): boolean {
    return !this.#waits;
  }

  /** Takes nothing more, and does not touch the response. */
  drop(): void {
    this.#receiver = null;
    this.#body = emptyBody;
  }

  /** Takes nothing more; the rest of the body is read and thrown away. */
  discard(): void {
    this.drop();
    this.#go();
  }

  #go(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#source.rearm();
  }

  onChunk(chunk: ArrayBuffer, isLast: boolean): void {
    const receiver = this.#receiver;
    const exchange = this.#exchange;
    // The body of an answered exchange has no room any more: that belongs to others by now.
    if (receiver === null || exchange.isAnswered) return;
    const size = chunk.byteLength;
    if (size > 0) {
      const needed = this.#length + size;
      if (needed > this.#body.length && !this.#grow(receiver, needed)) return;
      this.#body.set(new Uint8Array(chunk), this.#length);
      this.#length = needed;
      exchange.bytesIn = needed;
    }
    if (isLast) {
      this.#complete = true;
      exchange.bodyComplete();
      if (!this.#waits) this.#deliver();
      return;
    }
    exchange.bodyExpected();
    if (!this.#waits) return;
    // Again for whatever was read after all, since that has started uWS's timer.
    this.#stopped = true;
    this.#source.pause();
  }

  onShredded(): void {
    const receiver = this.#receiver;
    this.drop();
    receiver?.onBodyRefused(shredded());
  }

  #deliver(): void {
    const receiver = this.#receiver;
    const body = this.#body;
    this.drop();
    receiver?.onBody(this.#length === body.length ? body : body.subarray(0, this.#length));
  }

  /** @returns false when there is no room: then it is over */
  #grow(receiver: BodyReceiver, needed: number): boolean {
    if (needed > this.#limit) {
      this.drop();
      receiver.onBodyRefused(tooLarge(this.#limit));
      return false;
    }
    const capacity = this.#capacityFor(needed);
    if (!receiver.hold(capacity)) {
      this.drop();
      return false;
    }
    const start = this.#length === 0 ? null : this.#body.subarray(0, this.#length);
    this.#body = this.#exchange.bodyBuffer(capacity, start);
    return true;
  }

  /** Of what is announced, only a usual length is believed. */
  #capacityFor(needed: number): number {
    const { contentLength } = this.#exchange.head;
    if (contentLength > 0 && contentLength <= usualBytes) return Math.max(needed, contentLength);
    const most = contentLength > 0 ? Math.max(needed, contentLength) : this.#limit;
    return Math.min(most, Math.max(firstBytes, needed + Math.min(needed, mostAhead)));
  }
}

/** The error for a body of more than `limit` bytes. */
export function tooLarge(limit: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `The request body is larger than the ${limit} bytes allowed here.`,
  );
}

/** The error for a body that comes in too many pieces of a few bytes while others do the same. */
export function shredded(): GatewayError {
  return new GatewayError(
    'invalid_request',
    'The request body arrives in too many small chunks: send larger ones.',
  );
}

/** Bodies below this come from Node's own slabs, and above the other from the system. */
const smallestBytes = 512;
const largestBytes = 1024 * 1024;

/**
 * Buffers for request bodies, kept for the next body once nobody can read them any more: to make and collect one with
 * every request costs more than the copy into it (measured: with 318 KB prompts a fifth of the gateway's time went into
 * collecting them, and with 1 KB a slab of Node's for every eight calls takes 1 % of it).
 */
export interface BodyPool {
  /** @returns a buffer of at least `bytes` for `give`, or null for a size that is not kept here. */
  take(bytes: number): Buffer | null;
  /** Takes a buffer back that came from `take` and to which no reference is left anywhere. */
  give(buffer: Buffer): void;
  /** Lets go of what has not been used since the last call. */
  trim(): void;
}

/** @param limit bytes that may wait here at most */
export function createBodyPool(limit: number): BodyPool {
  const free: Buffer[][] = [];
  let waiting = 0;
  /** Fewest bytes that waited since the last trim: so much was not needed. */
  let unused = 0;
  return {
    take(bytes) {
      if (bytes < smallestBytes || bytes > largestBytes) return null;
      const sizeClass = 32 - Math.clz32(bytes - 1);
      const buffer = free[sizeClass]?.pop();
      if (buffer === undefined) return Buffer.allocUnsafeSlow(2 ** sizeClass);
      waiting -= buffer.length;
      unused = Math.min(unused, waiting);
      return buffer;
    },
    give(buffer) {
      if (waiting + buffer.length > limit) return;
      const sizeClass = 31 - Math.clz32(buffer.length);
      free[sizeClass] ??= [];
      free[sizeClass].push(buffer);
      waiting += buffer.length;
    },
    trim() {
      for (const buffers of free) {
        while (unused > 0) {
          const size = buffers?.shift()?.length;
          if (size === undefined) break;
          waiting -= size;
          unused -= size;
        }
      }
      unused = waiting;
    },
  };
}
