/**
 * One connection to an upstream. It carries one request at a time, and any number in sequence.
 *
 *   connecting ──► busy ◄──► idle
 *        └──────────┴─────────┴──► closed
 */

import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { type FaultPlace, surfaceFault, type UpstreamFailureReason } from '../errors.js';
import { AnswerReader } from './answer.js';
import { decodeContent } from './decode.js';
import { type Dialer, type DialListener, dial, lateDetail, type Reading, unconnectedReason } from './dial.js';
import type { ConnectionExchange } from './exchange.js';
import type { Origin } from './origin.js';
import { largeRead, type ReadTurns } from './read-turns.js';
import { RequestBody, type RequestBodyOwner } from './request-body.js';
import { tlsFailureDetail } from './secure.js';
import { Timed, type TimerWheel } from './timers.js';
import type { RequestSink, RequestWriter } from './write.js';

/**
 * Bytes per read of a plain connection. Twice the size would transfer a large file slightly faster, but what a slow
 * client has not taken of a read stays in memory.
 */
const readBufferBytes = 128 * 1024;
/** Bytes per read of a TLS connection, which delivers one record of 16 KB at a time (RFC 8446 section 5.1). */
const secureReadBufferBytes = 64 * 1024;

/** Creates the read buffers that all connections of a client use. */
export function createReading(): Reading {
  return { sharedBuffer: Buffer.allocUnsafeSlow(readBufferBytes), ownBytes: secureReadBufferBytes };
}

function releaseOrDestroy(connection: Connection): void {
  connection.releaseOrDestroy();
}

/** State that all connections of a client share. */
export interface ConnectionContext {
  readonly dialer: Dialer;
  readonly reading: Reading;
  readonly readTurns: ReadTurns;
  readonly writer: RequestWriter;
}

/** The part of its origin's pool that a connection uses. */
interface ConnectionPool {
  readonly origin: Origin;
  readonly context: ConnectionContext;
  readonly wheel: TimerWheel;
  /** Takes a connection back after a complete answer. */
  release(connection: Connection, keepAliveSeconds: number): void;
  /** Called when a connection has closed. */
  lost(connection: Connection): void;
  /** Replaces a closed connection with a new one for a request. */
  replace(connection: Connection, exchange: ConnectionExchange): void;
}

export class Connection extends Timed implements RequestSink, RequestBodyOwner, DialListener {
  readonly #pool: ConnectionPool;
  socket!: Socket;
  /** True when writes are encrypted before they are sent. */
  readonly secure: boolean;
  /** While idle: until when the upstream can be expected to keep the connection open (performance.now). */
  sureUntil = 0;
  readonly #answer = new AnswerReader();
  #exchange: ConnectionExchange | null;
  #connecting = true;
  /**
   * True once the origin is connected. A failure between this and the end of `#connecting` is one of the TLS handshake.
   */
  #transportUp = false;
  #closed = false;
  /** Number of requests served before the current one. */
  #served = 0;
  /** True until the current request has been written. */
  #unwritten = false;
  /** Body of the current request, if it has a source. */
  #body: RequestBody | null = null;
  /** True once a byte of the current answer has arrived. */
  #answered = false;
  /** True while the current answer leaves the connection fit for another request. */
  #reusable = true;
  #keepAliveSeconds = -1;
  #paused = false;
  /** True while reading waits for a later turn of the event loop. */
  #deferred = false;
  /** True while the socket does not read. TLS may deliver the rest of an answer all the same. */
  #stopped = false;
  /** Bytes read since a read was last counted. */
  #uncounted = 0;
  /** True when the answer is complete, but its end waits for `resume`. */
  #ending = false;
  /** True once the peer has ended its side. */
  #peerEnded = false;
  /** Reads that arrived during a pause. Only TLS delivers these: data that it had already decrypted. */
  #held: Buffer[] = [];
  /** What broke the connection after the reads in `#held`, which may be the whole answer. */
  #brokenBehind: string | null = null;

  /** Connects, and sends the request once connected. Throws if Node refuses the origin. */
  constructor(pool: ConnectionPool, exchange: ConnectionExchange, now: number) {
    super();
    this.#pool = pool;
    this.#exchange = exchange;
    const { origin, context } = pool;
    this.secure = origin.secure || origin.proxy?.secure === true;
    dial(origin, context.dialer, context.reading, this);
    exchange.connection = this;
    pool.wheel.set(this, Math.min(exchange.totalAt, now + exchange.deadlines.connectMs));
  }

  /** Sends a request from within `send`. Throws if the request cannot be written. */
  begin(exchange: ConnectionExchange, now: number): void {
    try {
      this.#begin(exchange, now);
    } catch (fault) {
      exchange.connection = null;
      this.destroy();
      throw fault;
    }
  }

  /** Sends a request that waited for a connection. */
  beginLate(exchange: ConnectionExchange, now: number): void {
    try {
      this.begin(exchange, now);
    } catch (fault) {
      exchange.onFault('upstream', fault);
    }
  }

  /** Requires a connection that is idle or new. */
  #begin(exchange: ConnectionExchange, now: number): void {
    const request = exchange.request;
    if (request === null) return;
    this.#exchange = exchange;
    this.#answered = false;
    this.#answer.begin(request.method === 'HEAD');
    exchange.connection = this;
    // For a request that is resent, the first time counts.
    if (!exchange.bytesSent) exchange.sentAt = now;
    if (request.source !== null) {
      exchange.bytesSent = true;
      this.#body = new RequestBody(this, request, request.source);
      this.#body.start();
      return;
    }
    this.#pool.wheel.set(this, Math.min(exchange.totalAt, now + exchange.deadlines.firstByteMs));
    this.#unwritten = true;
    exchange.copied = this.#pool.context.writer.write(this, request);
  }

  /** Closes the connection, and has a new one opened in its place for a request. */
  yieldTo(exchange: ConnectionExchange): void {
    this.#shut();
    this.#pool.replace(this, exchange);
  }

  onWrite(): void {
    this.#unwritten = false;
    const exchange = this.#exchange;
    if (exchange === null) return;
    exchange.bytesSent = true;
    if (exchange.wholeSentAt === 0) exchange.wholeSentAt = exchange.sentAt;
  }

  onBodyProgress(): void {
    const exchange = this.#exchange;
    if (exchange === null) return;
    if (exchange.wholeSentAt === 0 && !this.#sending) exchange.wholeSentAt = performance.now();
    this.#watch(exchange);
  }

  onBodyMistake(detail: string): void {
    const exchange = this.#exchange;
    this.destroy();
    if (exchange === null) return;
    exchange.connection = null;
    exchange.failLater('reset', detail);
  }

  onBodyThrown(fault: unknown): void {
    this.onFault('upstream', fault);
  }

  /** Destroys the connection, whose state is unknown after an exception, and ends the request on it. */
  override onFault(where: FaultPlace, fault: unknown): void {
    const exchange = this.#exchange;
    this.destroy();
    if (exchange === null) surfaceFault(fault);
    else exchange.onFault(where, fault);
  }

  /** Resumes reading after a pause. Delivers what was held back before it returns. */
  resume(): void {
    if (!this.#paused || this.#exchange === null) return;
    const exchange = this.#exchange;
    this.#paused = false;
    if (this.#ending) {
      this.#finish(exchange);
      return;
    }
    this.#refreshIdle(exchange);
    for (let piece = this.#held.shift(); piece !== undefined; piece = this.#held.shift()) {
      this.#deliver(piece, piece.length);
      if (this.#exchange !== exchange || this.#paused) return;
    }
    if (this.#brokenBehind !== null) this.#fail('reset', this.#brokenBehind);
    else if (this.#peerEnded) this.#endOfStream(exchange);
    else if (!this.#deferred) this.#readAgain();
  }

  /** Continues to read in a later turn of the event loop, unless the client has to read first. */
  readOn(): void {
    if (!this.#deferred) return;
    this.#deferred = false;
    if (this.#closed || this.#paused) return;
    if (this.#exchange !== null) this.#refreshIdle(this.#exchange);
    this.#readAgain();
  }

  #readAgain(): void {
    this.#stopped = false;
    this.socket.resume();
  }

  /** Closes the connection immediately, without notifying the request on it. */
  destroy(): void {
    if (this.#closed) return;
    this.#shut();
    this.#pool.lost(this);
  }

  /** Called when the connection was idle for too long, or when a deadline of the current request has passed. */
  expire(now: number): void {
    const exchange = this.#exchange;
    if (exchange === null) this.destroy();
    else if (now >= exchange.totalAt) exchange.fail('total_timeout', 'the whole request took too long');
    else if (this.#connecting) {
      this.#forgetName();
      exchange.fail('connect_timeout', lateDetail(this.#pool.origin, this.#transportUp));
    } else if (this.#sending) exchange.fail('idle_timeout', 'the body of the request is not taken');
    else if (this.#deferred) this.#refreshIdle(exchange);
    else if (exchange.headSeen) exchange.fail('idle_timeout', 'the answer stalled');
    else exchange.fail('first_byte_timeout', 'no answer in time');
  }

  onSocket(socket: Socket): void {
    this.socket = socket;
  }

  onTransport(): void {
    this.#transportUp = true;
  }

  onNoTunnel(reason: UpstreamFailureReason, detail: string): void {
    if (!this.#closed) this.#fail(reason, detail);
  }

  onReady(): void {
    this.#connecting = false;
    if (this.#exchange !== null) this.beginLate(this.#exchange, performance.now());
  }

  onRead(buffer: Buffer, length: number): boolean {
    if (this.#closed) return false;
    if (this.#paused && !this.#ending) {
      this.#held.push(Buffer.from(buffer.subarray(0, length)));
      return false;
    }
    return this.#deliver(buffer, length);
  }

  /** Takes bytes. If a handler throws, the connection is destroyed first, so that no half-read answer remains on it. */
  #deliver(buffer: Buffer, length: number): boolean {
    const exchange = this.#exchange;
    try {
      return this.#take(buffer, length);
    } catch (error) {
      if (exchange === null) throw error;
      exchange.onFault('upstream', error);
      return false;
    }
  }

  #take(buffer: Buffer, length: number): boolean {
    const exchange = this.#exchange;
    if (exchange === null) {
      // There is no request: the next one must not take these bytes for its answer.
      this.destroy();
      return false;
    }
    if (this.#ending) {
      this.#reusable = false;
      return true;
    }
    if (this.#unwritten) {
      // Bytes that precede the request cannot be its answer. The connection can no longer be trusted.
      this.#fail('reset', 'bytes before the request');
      return false;
    }
    this.#answered = true;
    const answer = this.#answer;
    let at = 0;
    if (!exchange.headSeen) {
      if (!this.#takeHead(exchange, buffer, length)) return true;
      at = answer.next;
    }
    const size = answer.readBody(buffer, at, length);
    if (size === -1) {
      exchange.fail('malformed_answer', answer.problem ?? 'malformed body');
      return false;
    }
    if (answer.leftover) this.#reusable = false;
    let more = true;
    if (size > 0) {
      const receiver = exchange.decoder ?? exchange.handler;
      more = receiver.onData(buffer.subarray(answer.payloadStart, answer.payloadStart + size));
      if (this.#exchange !== exchange) return false;
    }
    if (more && answer.done) {
      this.#finish(exchange);
      return true;
    }
    if (more) {
      this.#refreshIdle(exchange);
      this.#uncounted += length;
      return this.#uncounted < largeRead || this.#mayReadOn();
    }
    this.#paused = true;
    this.#pool.wheel.set(this, exchange.totalAt);
    // After a complete answer, reading continues only to detect unexpected bytes.
    this.#ending = answer.done;
    this.#stopped ||= !answer.done;
    return answer.done;
  }

  /** After a large read, or several that are as large together. A tunnel or TLS may deliver more while reading waits. */
  #mayReadOn(): boolean {
    this.#uncounted = 0;
    if (!this.#deferred) this.#deferred = !this.#pool.context.readTurns.mayReadOn(this);
    this.#stopped ||= this.#deferred;
    return !this.#deferred;
  }

  /** @returns true when the head is complete and the request still in flight */
  #takeHead(exchange: ConnectionExchange, buffer: Buffer, length: number): boolean {
    const head = this.#answer.readHead(buffer, length);
    if (head === null) {
      const problem = this.#answer.problem;
      if (problem !== null) exchange.fail('malformed_answer', problem);
      return false;
    }
    this.#reusable = head.reusable;
    this.#keepAliveSeconds = head.keepAliveSeconds;
    exchange.headSeen = true;
    exchange.request = null;
    exchange.bodyReleased = exchange.copied || (!exchange.retried && this.socket.writableLength === 0);
    if (head.contentCoding !== null && head.contentLength !== 0) {
      exchange.decoder = decodeContent(exchange, head);
    }
    if (exchange.decoder !== null) exchange.decoder.onHead(head);
    else exchange.handler.onHead(head);
    return this.#exchange === exchange;
  }

  /** See `UpstreamExchange.isWritten`. */
  get isWritten(): boolean {
    const isHandedOver = this.#body?.isHandedOver ?? (!this.#connecting && !this.#unwritten);
    return isHandedOver && this.socket.writableLength === 0;
  }

  /** True while a part of the request's body remains to be written. */
  get #sending(): boolean {
    return this.#body !== null && !this.#body.isWritten;
  }

  /** Sets the deadline of a request with a source, according to what the request waits for. */
  #watch(exchange: ConnectionExchange): void {
    const { deadlines, totalAt } = exchange;
    let patience = Number.POSITIVE_INFINITY;
    if (this.#body?.isBlocked) patience = deadlines.idleMs;
    else if (!this.#sending) patience = exchange.headSeen ? deadlines.idleMs : deadlines.firstByteMs;
    const due = this.#paused ? totalAt : Math.min(totalAt, performance.now() + patience);
    this.#pool.wheel.set(this, due);
  }

  #refreshIdle(exchange: ConnectionExchange): void {
    if (this.#body !== null) {
      this.#watch(exchange);
      return;
    }
    const due = performance.now() + exchange.deadlines.idleMs;
    this.#pool.wheel.set(this, Math.min(exchange.totalAt, due));
  }

  /**
   * Called when the answer is complete and delivered. Releases the connection first, so that `onEnd` may use it again.
   */
  #finish(exchange: ConnectionExchange): void {
    this.#exchange = null;
    this.#paused = false;
    this.#ending = false;
    this.#served++;
    const fit =
      this.#reusable && !this.#peerEnded && (this.#body?.isHandedOver ?? true) && this.#held.length === 0;
    this.#closeBody();
    this.#deferred = false;
    if (this.#stopped && !this.#closed) this.#readAgain();
    if (!fit) this.destroy();
    else if (this.secure && this.socket.writableLength > 0) setImmediate(releaseOrDestroy, this);
    else this.releaseOrDestroy();
    exchange.finish();
  }

  /**
   * Returns the connection to the pool, or closes it if a part of the request is still unsent. An upstream that answers
   * before it has the whole request may continue to read the rest, or discard it. A TLS socket counts bytes that were
   * sent in the current turn of the event loop as unwritten, and corrects that before the turn's immediates run.
   */
  releaseOrDestroy(): void {
    if (this.#closed) return;
    if (this.socket.writableLength === 0) this.#pool.release(this, this.#keepAliveSeconds);
    else this.destroy();
  }

  onPeerEnd(): void {
    this.#peerEnded = true;
    const exchange = this.#exchange;
    if (this.#closed || this.#connecting) return;
    if (exchange === null) this.destroy();
    else if (!this.#paused) this.#endOfStream(exchange);
  }

  #endOfStream(exchange: ConnectionExchange): void {
    if (!exchange.headSeen && this.#sending) this.#fail('reset', 'closed within the body of the request');
    else if (!this.#answered) this.#fail('reset', 'closed before any byte of the answer');
    else if (!exchange.headSeen) this.#fail('truncated', 'closed within the head of the answer');
    else if (this.#answer.endOfStream()) this.#finish(exchange);
    else this.#fail('truncated', 'closed within the body of the answer');
  }

  onSocketError(error: NodeJS.ErrnoException): void {
    const words = error.code ?? error.message;
    if (this.#closed || this.#endsLater(words)) return;
    if (!this.#connecting) {
      this.#fail('reset', words);
      return;
    }
    this.#forgetName();
    if (this.#transportUp) this.#fail('tls_failed', tlsFailureDetail(error));
    else this.#fail(unconnectedReason(error), words);
  }

  onSocketClose(): void {
    if (this.#closed || this.#endsLater('closed by the upstream')) return;
    if (this.#connecting) {
      this.#forgetName();
      this.#fail(this.#transportUp ? 'tls_failed' : 'connect_failed', 'closed');
    } else this.#fail('reset', 'closed by the upstream');
  }

  /** Drops the cached addresses: the upstream, or its proxy, may have moved. */
  #forgetName(): void {
    const { context, origin } = this.#pool;
    context.dialer.names.forget((origin.proxy ?? origin).host);
  }

  /** Returns true if everything has arrived and waits for `resume`. @param words how the connection broke */
  #endsLater(words: string): boolean {
    this.#reusable = false;
    if (!this.#paused) return false;
    if (this.#held.length > 0) this.#brokenBehind ??= words;
    return this.#ending || this.#peerEnded || this.#brokenBehind !== null;
  }

  #fail(reason: UpstreamFailureReason, detail: string): void {
    const exchange = this.#exchange;
    // Upstreams may close idle connections at any time. They never processed a request that met such a close.
    if (exchange !== null && this.#served > 0 && !this.#answered && exchange.mayResend()) {
      exchange.retried = true;
      exchange.connection = null;
      this.yieldTo(exchange);
      return;
    }
    this.destroy();
    try {
      exchange?.fail(reason, detail);
    } catch (fault) {
      exchange?.onFault('upstream', fault);
    }
  }

  #closeBody(): void {
    this.#body?.close();
    this.#body = null;
  }

  #shut(): void {
    this.#closed = true;
    this.#exchange = null;
    this.#closeBody();
    this.#held = [];
    this.#pool.wheel.clear(this);
    this.socket.destroy();
  }
}
