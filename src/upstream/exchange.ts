/** One request in flight: the handle of its owner, and its state for the pool and the connection. */

import { performance } from 'node:perf_hooks';
import { type FaultPlace, surfaceFault, type UpstreamFailureReason } from '../errors.js';
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

/** A request that a connection of our HTTP/1.1 client serves, or will. */
export class ConnectionExchange extends Timed implements UpstreamExchange {
  readonly pool: ExchangePool;
  /** Null once the answer's head is there, when it can no longer be sent again: the body may be freed. */
  request: UpstreamRequest | null;
  /** Its body is still arriving: it cannot be sent twice, and so needs a connection that has not been used before. */
  readonly streamed: boolean;
  readonly deadlines: Deadlines;
  readonly handler: UpstreamHandler;
  /** When the whole request is late (performance.now). */
  readonly totalAt: number;
  sentAt = 0;
  /** When all of the request, its body included, had first been handed to a socket (performance.now), or 0. */
  wholeSentAt = 0;
  /** The connection that serves it, or null while it waits and after its end on the wire. */
  connection: { resume(): void; destroy(): void } | null = null;
  /** Stands between the connection and the handler when the body came compressed. */
  decoder: ContentDecoder | null = null;
  bytesSent = false;
  /** No part of it is read from its own buffers any more. */
  copied = false;
  bodyReleased = false;
  headSeen = false;
  /** True once the request was sent again because a reused connection had gone stale. */
  retried = false;
  /** True after `onEnd`, `onFailure` or `cancel`: nothing is called any more. */
  over = false;
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

  /** The total deadline, while no connection watches over it: in the queue, or in the tail of a decoder. */
  expire(): void {
    this.fail('total_timeout', 'the whole request took too long');
  }

  /** Called when the answer has been read to its end. */
  finish(): void {
    this.connection = null;
    if (this.decoder !== null) {
      this.pool.wheel.set(this, this.totalAt);
      this.decoder.onEnd();
      return;
    }
    this.complete();
  }

  /** The handler has got everything. */
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

  /** Ends it with a failure, whatever state it is in; its connection, if any, is destroyed first. */
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

  /** Fails after `send` has returned, so that its owner holds the exchange by then. */
  failLater(reason: UpstreamFailureReason, detail: string): void {
    process.nextTick(() => this.fail(reason, detail));
  }

  /** Cancels it, and tells its owner. Never throws, since it is called from the middle of what serves others, too. */
  override onFault(where: FaultPlace, fault: unknown): void {
    this.cancel();
    const { handler } = this;
    try {
      if (handler.onFault === undefined) surfaceFault(fault);
      else handler.onFault(where, fault);
    } catch (second) {
      surfaceFault(fault);
      surfaceFault(second);
    }
  }

  /** Whether it may be sent again after its connection has ended without a byte of an answer. */
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
    this.connection = null;
    connection?.destroy();
  }
}
