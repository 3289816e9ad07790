import type { GatewayError } from '../errors.js';
import { type BodyOwner, type BodyPool, bodyTooLarge, refuseAnnounced, tooManyChunks } from './body.js';
import type { BodySource, ChunkReceiver } from './client-link.js';

/** Receives a request body in pieces as it arrives. Nothing is called after the exchange has ended. */
export interface BodyStreamReceiver {
  /**
   * @param chunk valid only until this returns
   * @returns false to stop the delivery until `resumeBody`, which may also be called before this returns
   */
  onChunk(chunk: Buffer): boolean;
  /** Called when more arrives after a stop. If there is room by now, the receiver may call `resumeBody`. */
  onMore(): void;
  /** Called when the whole body was delivered. */
  onEnd(): void;
  /** Called when the announced or counted length exceeds the limit. Nothing more is delivered. */
  onBodyRefused(error: GatewayError): void;
  /**
   * Called when the memory for bytes that arrive after a stop is about to grow, or is released.
   * @param bytes its total size from now on
   * @returns false if there is no memory for them, or no need; nothing more is delivered then
   */
  holdWaiting(bytes: number): boolean;
  /** Called when the whole response is being sent. The rest of the body is discarded, and nothing more is called. */
  onDiscarded(): void;
}

interface BodyStreamOptions {
  /** The largest accepted body, in bytes. */
  readonly limit: number;
  /** Buffers for bytes that wait. */
  readonly pool: BodyPool;
  readonly receiver: BodyStreamReceiver;
  /** The receiver is stopped from the start. */
  readonly waits: boolean;
}

/** Memory for bytes that wait is taken in steps of this size. */
const waitingStep = 256 * 1024;

/**
 * Starts to deliver the body of an exchange.
 * @returns null if it is refused by its announced length
 */
export function streamBody(
  exchange: BodyOwner,
  source: BodySource,
  options: BodyStreamOptions,
): BodyStream | null {
  if (exchange.head.contentLength > options.limit) {
    refuseAnnounced(source, options.limit, options.receiver);
    return null;
  }
  exchange.bodyExpected();
  return new BodyStream(exchange, source, options);
}

/**
 * Delivers a request body to a receiver that may stop it.
 *
 * Bytes that arrive while the receiver has stopped wait here. uWS continues to read a socket, stopped or not, as long
 * as each read returns full 512 KB. A client that is faster than this process thus delivers more after a stop than the
 * kernel's buffers hold. A chunked body arrives in as many pieces as its client has made.
 *
 * A paused socket reports nothing, not even that its client has disconnected. It is therefore resumed every few seconds
 * until it was read again, as long as nothing waits here. A socket is not paused while its client does not read the
 * response, since it would not report that it drains either. Bytes that arrive meanwhile wait here as well.
 */
export class BodyStream implements ChunkReceiver {
  readonly #exchange: BodyOwner;
  readonly #source: BodySource;
  readonly #limit: number;
  #receiver: BodyStreamReceiver | null;
  /** The receiver has stopped the delivery. */
  #paused: boolean;
  /** The socket was paused. */
  #stopped = false;
  /** The whole body has arrived. */
  #complete = false;
  #delivering = false;
  #resumedMeanwhile = false;
  readonly #backlog: BodyBacklog;
  /** Bytes for the backlog that the receiver has taken memory for. */
  #held = 0;

  constructor(exchange: BodyOwner, source: BodySource, { limit, pool, receiver, waits }: BodyStreamOptions) {
    this.#exchange = exchange;
    this.#source = source;
    this.#limit = limit;
    this.#backlog = new BodyBacklog(pool);
    this.#receiver = receiver;
    this.#paused = waits;
    source.read(this);
  }

  /** See `Exchange.resumeBody`. */
  resume(): void {
    if (this.#delivering) {
      this.#resumedMeanwhile = true;
      return;
    }
    if (!this.#paused) return;
    this.#paused = false;
    while (!this.#paused && this.#backlog.bytes > 0) {
      this.#backlog.takeFirst((bytes) => this.#deliver(bytes));
    }
    if (this.#backlog.bytes === 0 && this.#held > 0) {
      this.#held = 0;
      this.#receiver?.holdWaiting(0);
    }
    this.#update();
  }

  /** @returns whether the socket may be read a little now, to learn whether its client is still connected */
  mayRead(): boolean {
    if (this.#backlog.bytes > 0 && !this.#complete && !this.#exchange.isBlocked) return false;
    this.#stopped = false;
    return true;
  }

  /** Stops delivering, without touching the response. */
  drop(): void {
    this.#receiver = null;
    this.#backlog.clear();
  }

  /** Stops delivering. The rest of the body is read and discarded. */
  discard(): void {
    const receiver = this.#receiver;
    this.#refuse();
    receiver?.onDiscarded();
  }

  #refuse(): void {
    this.drop();
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#source.rearm();
  }

  onChunk(bytes: ArrayBuffer, isLast: boolean): void {
    const receiver = this.#receiver;
    if (receiver === null) return;
    const exchange = this.#exchange;
    exchange.bytesIn += bytes.byteLength;
    if (exchange.bytesIn > this.#limit) {
      this.#refuse();
      receiver.onBodyRefused(bodyTooLarge(this.#limit));
      return;
    }
    if (this.#paused) {
      receiver.onMore();
      if (this.#receiver === null) return;
    }
    if (isLast) {
      this.#complete = true;
      // A socket that was paused needs its timer restarted until the exchange ends: see `UwsResponse.rearm`.
      if (!this.#stopped) exchange.bodyComplete();
    }
    if (bytes.byteLength > 0) {
      const chunk = Buffer.from(bytes);
      if (!this.#paused) this.#deliver(chunk);
      else this.#keep(receiver, chunk);
    }
    this.#update();
  }

  onShredded(): void {
    const receiver = this.#receiver;
    if (receiver === null) return;
    this.#refuse();
    receiver.onBodyRefused(tooManyChunks());
  }

  #keep(receiver: BodyStreamReceiver, chunk: Buffer): void {
    const needed = this.#backlog.bytes + chunk.length;
    if (needed > this.#held) {
      const wanted = Math.ceil(needed / waitingStep) * waitingStep;
      if (!receiver.holdWaiting(wanted)) {
        this.#refuse();
        return;
      }
      this.#held = wanted;
    }
    this.#backlog.add(chunk);
  }

  #deliver(chunk: Buffer): void {
    this.#delivering = true;
    this.#resumedMeanwhile = false;
    try {
      const flowing = this.#receiver?.onChunk(chunk) ?? true;
      this.#paused = !flowing && !this.#resumedMeanwhile;
    } finally {
      this.#delivering = false;
    }
  }

  /** Reports the end to the receiver, or pauses or resumes the socket as the receiver requires. */
  #update(): void {
    const receiver = this.#receiver;
    if (receiver === null) return;
    if (this.#complete && !this.#paused) {
      this.drop();
      receiver.onEnd();
      return;
    }
    // After a complete body nothing is left to pause, and a disconnecting client must be noticed.
    if (this.#paused && !this.#complete && !this.#exchange.isBlocked) {
      // Repeated, since reading has restarted uWS's timer.
      this.#stopped = true;
      this.#source.pause();
    } else if (this.#stopped) {
      this.#stopped = false;
      this.#source.rearm();
    }
  }
}

const leastBytes = 16 * 1024;
const mostBytes = 512 * 1024;

/** Copies of a request body's pieces that wait for their receiver, in buffers of the pool. */
export class BodyBacklog {
  readonly #pool: BodyPool;
  #buffers: Buffer[] = [];
  /** Filled bytes of each buffer. */
  #sizes: number[] = [];
  #bytes = 0;

  constructor(pool: BodyPool) {
    this.#pool = pool;
  }

  /** The number of bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Appends a copy of a piece. */
  add(piece: Buffer): void {
    this.#bytes += piece.length;
    let rest = piece;
    while (rest.length > 0) {
      const last = this.#buffers.length - 1;
      const buffer = this.#buffers[last];
      const size = this.#sizes[last] ?? 0;
      if (buffer === undefined || size === buffer.length) {
        this.#buffers.push(this.#room(rest.length));
        this.#sizes.push(0);
        continue;
      }
      const copied = rest.copy(buffer, size);
      this.#sizes[last] = size + copied;
      rest = rest.subarray(copied);
    }
  }

  /** Passes the first waiting bytes to `take`. They are valid until `take` returns. */
  takeFirst(take: (bytes: Buffer) => void): void {
    const buffer = this.#buffers.shift();
    const size = this.#sizes.shift();
    if (buffer === undefined || size === undefined) return;
    this.#bytes -= size;
    take(buffer.subarray(0, size));
    this.#pool.give(buffer);
  }

  clear(): void {
    for (const buffer of this.#buffers) this.#pool.give(buffer);
    this.#buffers = [];
    this.#sizes = [];
    this.#bytes = 0;
  }

  #room(bytes: number): Buffer {
    const size = Math.min(mostBytes, Math.max(leastBytes, bytes));
    return this.#pool.take(size) ?? Buffer.allocUnsafeSlow(size);
  }
}
