import { GatewayError } from '../errors.js';
import type { BodySource, ChunkReceiver } from './client-link.js';
import type { RequestHead } from './request-head.js';

/** The exchange that a request body belongs to. */
export interface BodyOwner {
  readonly head: Pick<RequestHead, 'contentLength' | 'chunked'>;
  bytesIn: number;
  /** A response has begun, or none can be sent any more. */
  readonly isAnswered: boolean;
  /** Its client does not read the response at the moment. */
  readonly isBlocked: boolean;
  /** Called while more of the body is expected. */
  bodyExpected(): void;
  /** Called when the whole body has arrived. */
  bodyComplete(): void;
  /** @returns a buffer of this size that begins with `start` */
  bodyBuffer(capacity: number, start: Buffer | null): Buffer;
}

/** Receives a request body. Exactly one of the two methods ends it, once, unless the client disconnects first. */
export interface BodyReceiver {
  /** The whole body; the receiver owns the buffer. */
  onBody(body: Buffer): void;
  onBodyRefused(error: GatewayError): void;
  /**
   * The body is about to occupy this many bytes in total.
   * @returns false if there is no memory for them; the receiver has then responded, and is not called again
   */
  hold(bytes: number): boolean;
}

/** A body that is announced as at most this large gets its whole buffer with the first bytes. */
const usualBytes = 512 * 1024;
const firstBytes = 16 * 1024;
/** A buffer that is too small is doubled, but grows by at most this. */
const mostAhead = 8 * 1024 * 1024;
const emptyBody: Buffer = Buffer.alloc(0);
const nobody: ChunkReceiver = { onChunk() {}, onShredded() {} };

/**
 * Refuses a body that is announced as larger than `limit` bytes. If the connection stays open, the body is read and
 * discarded: uWS closes an unread connection ten seconds after the response, and a read one only below 16 KB a second.
 */
export function refuseAnnounced(
  source: BodySource,
  limit: number,
  receiver: Pick<BodyReceiver, 'onBodyRefused'>,
): void {
  source.read(nobody);
  receiver.onBodyRefused(bodyTooLarge(limit));
}

/**
 * Begins to collect a request body of at most `limit` bytes. A body of usual size gets one buffer of the announced
 * size. A larger body, or one of unknown length, gets a buffer that grows with it. uWS's chunks are valid only in their
 * callback, so this copy is necessary.
 * @returns null if the body is refused by its announced length
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

/** Collects a request body into one buffer. */
export class BodyCollector implements ChunkReceiver {
  readonly #exchange: BodyOwner;
  readonly #source: BodySource;
  readonly #limit: number;
  /** Null when no more of the body is needed. */
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

  /** Delivers what has arrived, and continues to read. */
  resume(): void {
    this.#waits = false;
    this.#go();
    if (this.#complete) this.#deliver();
  }

  /** @returns whether the socket may be read */
  mayRead(): boolean {
    return !this.#waits;
  }

  /** Stops without touching the response. */
  drop(): void {
    this.#receiver = null;
    this.#body = emptyBody;
  }

  /** Stops, and has the rest of the body read and discarded. */
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
    // The buffer of an answered exchange may already belong to another.
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
    // Repeated, since reading has restarted uWS's timer.
    this.#stopped = true;
    this.#source.pause();
  }

  onShredded(): void {
    const receiver = this.#receiver;
    this.drop();
    receiver?.onBodyRefused(tooManyChunks());
  }

  #deliver(): void {
    const receiver = this.#receiver;
    const body = this.#body;
    this.drop();
    receiver?.onBody(this.#length === body.length ? body : body.subarray(0, this.#length));
  }

  /** @returns false if there is no memory, which ends the body */
  #grow(receiver: BodyReceiver, needed: number): boolean {
    if (needed > this.#limit) {
      this.drop();
      receiver.onBodyRefused(bodyTooLarge(this.#limit));
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

  /** Trusts an announced length only up to the usual size. */
  #capacityFor(needed: number): number {
    const { contentLength } = this.#exchange.head;
    if (contentLength > 0 && contentLength <= usualBytes) return Math.max(needed, contentLength);
    const most = contentLength > 0 ? Math.max(needed, contentLength) : this.#limit;
    return Math.min(most, Math.max(firstBytes, needed + Math.min(needed, mostAhead)));
  }
}

/** The error for a body of more than `limit` bytes. */
export function bodyTooLarge(limit: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `The request body is larger than the ${limit} bytes allowed here.`,
  );
}

/** The error for a body in too many tiny pieces, while other bodies arrive in the same way. */
export function tooManyChunks(): GatewayError {
  return new GatewayError(
    'invalid_request',
    'The request body arrives in too many small chunks: send larger ones.',
  );
}

/** Smaller bodies come from Node's slabs, larger ones than the second bound from the system. */
const smallestBytes = 512;
const largestBytes = 1024 * 1024;

/**
 * Pool of buffers for request bodies. Allocating and collecting one with every request costs more than the copy into it
 * (measured: a fifth of the gateway's time with 318 KB prompts, and 1 % with 1 KB, where eight calls share a slab of
 * Node's).
 */
export interface BodyPool {
  /** @returns a buffer of at least `bytes`, or null for a size that is not pooled */
  take(bytes: number): Buffer | null;
  /** Returns a buffer of `take` to the pool. No reference to it may be left. */
  give(buffer: Buffer): void;
  /** Frees buffers that were not used since the last call. */
  trim(): void;
}

/** @param limit most bytes of unused buffers */
export function createBodyPool(limit: number): BodyPool {
  const free: Buffer[][] = [];
  let waiting = 0;
  /** Fewest unused bytes since the last trim: these were not needed. */
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
