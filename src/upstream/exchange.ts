/** One request in flight: the handle of its owner, and its state for the pool and the connection. */

import { performance } from 'node:perf_hooks';
import { type FaultPlace, handFault, type UpstreamFailureReason } from '../errors.js';
import type { ContentDecoder } from './decode.js';
import type { Origin } from './origin.js';
import { Timed, type TimerWheel } from './timers.js';
import {
  type Deadlines,
  resendableMs,
  type UpstreamExchange,
  type UpstreamHandler,
  type UpstreamRequest,
} from './types.js';

/** The part of its origin's pool that a request uses. */
interface ExchangePool {
  readonly origin: Origin;
  readonly wheel: TimerWheel;
  /** Removes a request from the queue. */
  forget(exchange: ConnectionExchange): void;
}

/** A request that a connection of the HTTP/1.1 client serves, or that waits for one. */
export class ConnectionExchange extends Timed implements UpstreamExchange {
  readonly pool: ExchangePool;
  /** Null once the head of the answer has arrived: the request can no longer be resent, so its body may be freed. */
  request: UpstreamRequest | null;
  /**
   * True when the body is still arriving: it cannot be sent twice, and therefore needs a connection never used before.
   */
  readonly streamed: boolean;
  readonly deadlines: Deadlines;
  readonly handler: UpstreamHandler;
  /** Deadline of the whole request (performance.now). */
  readonly totalAt: number;
  sentAt = 0;
  /** When the whole request, including its body, was first handed to a socket (performance.now), or 0. */
  wholeSentAt = 0;
  /** The connection that serves the request. Null while the request waits, and after its end on the wire. */
  connection: { readonly isWritten: boolean; resume(): void; destroy(): void } | null = null;
  /** Decodes a compressed body between the connection and the handler. */
  decoder: ContentDecoder | null = null;
  bytesSent = false;
  /** True when no part of the request is read from its own buffers any more. */
  copied = false;
  bodyReleased = false;
  headSeen = false;
  /** True once the request was sent again because a reused connection had gone stale. */
  retried = false;
  /** True after `onEnd`, `onFailure` or `cancel`: no further callback follows. */
  over = false;
  /** See `isWritten`, of a connection that the request no longer has. */
  #wasWritten = false;
  /** True while the request is in the pool's queue. */
  waiting = false;
  waitPrevious: ConnectionExchange | null = null;
  waitNext: ConnectionExchange | null = null;

  constructor(
    pool: ExchangePool,
    request: UpstreamRequest,
    deadlines: Deadlines,
    handler: UpstreamHandler,
    now: number,
  ) {
    super();
    this.pool = pool;
    this.request = request;
    this.streamed = request.source !== null;
    this.deadlines = deadlines;
    this.handler = handler;
    this.totalAt = now + deadlines.totalMs;
  }

  get isWritten(): boolean {
    return this.connection?.isWritten ?? this.#wasWritten;
  }

  /** Resumes a paused body. May call the handler before it returns. */
  resume(): void {
    if (this.over) return;
    if (this.decoder !== null) this.decoder.resume();
    else this.connection?.resume();
  }

  cancel(): void {
    if (this.over) return;
    this.over = true;
    this.request = null;
    this.#detach();
  }

  /** Called at the total deadline while no connection enforces it: in the queue, or while a decoder finishes. */
  expire(): void {
    this.fail('total_timeout', 'the whole request took too long');
  }

  /** Called when the answer has been read to its end. */
  finish(): void {
    this.#wasWritten = this.isWritten;
    this.connection = null;
    if (this.decoder !== null) {
      this.pool.wheel.set(this, this.totalAt);
      this.decoder.onEnd();
      return;
    }
    this.complete();
  }

  /** Called when the handler has received everything. */
  complete(): void {
    if (this.over) return;
    this.over = true;
    this.request = null;
    if (this.tick !== -1) this.pool.wheel.clear(this);
    try {
      this.handler.onEnd();
    } catch (fault) {
      this.onFault('upstream', fault);
    }
  }

  /** Ends the request with a failure, in any state. Destroys its connection first, if it has one. */
  fail(reason: UpstreamFailureReason, detail: string): void {
    if (this.over) return;
    this.over = true;
    this.request = null;
    this.#detach();
    try {
      this.handler.onFailure({
        reason,
        detail: `${this.pool.origin.authority}: ${detail}`,
        bytesSent: this.bytesSent,
        headSeen: this.headSeen,
        sentMs: this.wholeSentAt === 0 ? 0 : performance.now() - this.wholeSentAt,
      });
    } catch (fault) {
      this.onFault('upstream', fault);
    }
  }

  /** Fails after `send` has returned, so that the owner has the exchange by then. */
  failLater(reason: UpstreamFailureReason, detail: string): void {
    process.nextTick(() => this.fail(reason, detail));
  }

  /** Cancels the request and notifies its owner. Never throws, since its callers also serve other requests. */
  override onFault(where: FaultPlace, fault: unknown): void {
    this.cancel();
    handFault(this.handler, where, fault);
  }

  /** Whether the request may be resent after its connection has ended without a byte of an answer. */
  mayResend(): boolean {
    const { request } = this;
    if (request === null || this.streamed || this.retried) return false;
    if (!this.bytesSent) return true;
    return performance.now() - this.wholeSentAt < resendableMs && !request.hasEffects(request.body);
  }

  #detach(): void {
    if (this.tick !== -1) this.pool.wheel.clear(this);
    if (this.waiting) this.pool.forget(this);
    this.decoder?.destroy();
    this.decoder = null;
    const connection = this.connection;
    this.#wasWritten = this.isWritten;
    this.connection = null;
    connection?.destroy();
  }
}
