import type { HttpResponse } from 'uWebSockets.js';
import { requestIdOf, requestSeries } from '../request-id.js';
import { type BodyReceiver, collectBody } from './body.js';
import { type BodyStream, type BodyStreamReceiver, rearm, streamBody } from './body-stream.js';
import type { ExchangeHost, ExchangeListener } from './exchange-host.js';
import type { RequestHead } from './request-head.js';
import { SizedAnswer, type SizedState } from './sized.js';
import type { SocketOffer } from './socket.js';
import { statusLines } from './status-lines.js';
import { Tended } from './upkeep.js';

/** Whole answers up to this size leave in one go: they fit into any socket's buffer. */
const directBytes = 16 * 1024;
/** At four seconds a round, five minutes. */
const mostStalledRounds = 75;

/**
 * One request and its answer, and the one place that knows uWS's rules: the response is never touched after an
 * abort or an end, everything is written inside `cork`, and what uWS buffers stays bounded.
 *
 * Header lines are the tail of one value for uWS (`id CRLF name: value CRLF …`), one crossing into C++ for all of them:
 * so `lines` must be complete header lines, each preceded by CRLF, with values that hold neither CR nor LF.
 */
export class Exchange extends Tended {
  readonly method: string;
  readonly path: string;
  readonly head: RequestHead;
  /** `req_` and hex: `x-request-id` of the answer. */
  readonly id: string;
  /** Of its id: see `requestIdOf`. Below zero for one that came as a message, whose id has none. */
  readonly number: number;
  listener: ExchangeListener | null = null;
  /** Of a request that asks for a WebSocket: see `acceptSocket`. */
  offer: SocketOffer | null = null;
  /** Close the connection after the answer. */
  closing = false;
  bytesIn = 0;
  bytesOut = 0;
  /** The answer's status once it was begun, else 0. */
  status = 0;
  #response: HttpResponse | null;
  readonly #host: ExchangeHost;
  #headLines: string | null = null;
  #blocked = false;
  /** The backlog inside uWS may not be empty: see `write`. */
  #backlog = false;
  #pending: Buffer | null = null;
  #ending = false;
  /** An answer of known length that does not leave in one go. */
  #sized: SizedAnswer | null = null;
  #bodyStream: BodyStream | null = null;
  #bodyPending = false;
  /** Rounds of `tend` since the client last took something. */
  #stalledRounds = 0;
  /** Holds the request body, and goes back to the pool with `recycleBody`. */
  #bodyBuffer: Buffer | null = null;

  constructor(
    response: HttpResponse,
    method: string,
    path: string,
    head: RequestHead,
    id: string | number,
    host: ExchangeHost,
  ) {
    super();
    this.method = method;
    this.path = path;
    this.head = head;
    this.number = typeof id === 'number' ? id : -1;
    this.id = typeof id === 'number' ? requestIdOf(requestSeries, id) : id;
    this.#response = response;
    this.#host = host;
    host.open++;
    host.served++;
    response.onAborted(() => this.#onAborted());
  }

  /** True while something can still be sent. */
  get alive(): boolean {
    return this.#response !== null;
  }

  /** True once an answer was begun, and when none can be any more. */
  get isAnswered(): boolean {
    return this.#response === null || this.status !== 0;
  }

  /** True while the client has to take what waits before anything more can be sent. */
  get isBlocked(): boolean {
    return this.#blocked;
  }

  /** Collects the request body; must be called before the handler of the request returns. */
  readBody(limit: number, receiver: BodyReceiver): void {
    if (this.#response !== null) collectBody(this, this.#response, limit, receiver);
  }

  /**
   * Hands the request body on as it comes, at most `limit` bytes; must be called before the handler of the request
   * returns. A client may be silent for as long as the owner of the exchange lets it.
   */
  streamBody(limit: number, receiver: BodyStreamReceiver): void {
    const response = this.#response;
    if (response === null) return;
    this.#bodyStream = streamBody(this, response, { limit, pool: this.#host.bodies, receiver });
  }

  /** After `onChunk` has said false: go on, now or as soon as it has returned. */
  resumeBody(): void {
    this.#bodyStream?.resume();
  }

  /** Some of the body has yet to come: uWS, which would cut a client below 16 KB a second, is kept from it. */
  bodyExpected(): void {
    this.#bodyPending = true;
    this.#host.tended.add(this);
  }

  /** All of the body has come. */
  bodyComplete(): void {
    this.#bodyPending = false;
    if (!this.#blocked) this.#host.tended.remove(this);
  }

  /** @returns room for a body of exactly so many bytes */
  bodyBuffer(bytes: number): Buffer {
    this.#bodyBuffer = this.#host.bodies.take(bytes);
    return this.#bodyBuffer?.subarray(0, bytes) ?? Buffer.allocUnsafe(bytes);
  }

  /** Says that nobody will read the request body any more, here or on its way to an upstream. */
  recycleBody(): void {
    if (this.#bodyBuffer !== null) this.#host.bodies.give(this.#bodyBuffer);
    this.#bodyBuffer = null;
  }

  /**
   * Sends a whole answer. `lines` as described above, without `x-request-id`. The bytes are taken over in any case.
   * @returns false when the client does not take all of it at once: `onDrained` follows when it has
   */
  respond(status: number, lines: string, body: string | Buffer): boolean {
    const response = this.#response;
    if (response === null) return true;
    if (this.method === 'HEAD') {
      this.respondEmpty(status, lines, Buffer.byteLength(body));
      return true;
    }
    this.status = status;
    this.bytesOut = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    const close = this.closing || this.#host.draining;
    this.#bodyStream?.discard();
    if (this.bytesOut > directBytes) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      return this.#respondLarge(response, close ? `${lines}\r\nconnection: close` : lines, bytes);
    }
    this.#finish();
    response.cork(() => {
      this.#writeHead(response, lines);
      response.end(body, close);
    });
    return true;
  }

  /** uWS gives what waits of an ended response ten seconds to drain: what the socket does not take waits with us. */
  #respondLarge(response: HttpResponse, lines: string, body: Buffer): boolean {
    let done = false;
    response.cork(() => {
      this.#writeHead(response, lines);
      done = response.tryEnd(body, body.length)[1];
    });
    if (done) {
      this.#finish();
      return true;
    }
    this.#sized = new SizedAnswer(response, body.length);
    this.#sized.keep(body);
    response.onWritable(() => this.#onWritable());
    this.#block();
    return false;
  }

  /**
   * Answers without a body: 204, 304, and all that is asked with HEAD.
   * @param contentLength bytes that the answer to GET would have, or null to name no length
   */
  respondEmpty(status: number, lines: string, contentLength: number | null): void {
    const response = this.#response;
    if (response === null) return;
    this.status = status;
    this.bytesOut = 0;
    this.#bodyStream?.discard();
    // uWS waits for the bytes of a length that it is told. And it closes only after an answer with one, so a connection
    // that is not to go on is cut, as soon as the head has left.
    const allLines = contentLength === null ? lines : `${lines}\r\ncontent-length: ${contentLength}`;
    if (this.closing || this.#host.draining) {
      this.listener = null;
      response.cork(() => this.#writeHead(response, `${allLines}\r\nconnection: close\r\n`));
      setImmediate(() => this.abort());
      return;
    }
    this.#finish();
    response.cork(() => {
      this.#writeHead(response, allLines);
      response.endWithoutBody();
    });
  }

  /**
   * Begins a streamed answer. The head leaves with the first `write`. In a drain it asks the client to close, since
   * uWS can say so only at the end, where it would write a header line into the body.
   * @param contentLength bytes of the answer, or -1 for a chunked one. With a length, the exchange has ended as soon as
   * the last byte was taken; more bytes, or an end with fewer, cut the connection.
   */
  begin(status: number, lines: string, contentLength = -1): void {
    const response = this.#response;
    if (response === null) return;
    this.status = status;
    this.#headLines = this.closing || this.#host.draining ? `${lines}\r\nconnection: close` : lines;
    if (contentLength >= 0) this.#sized = new SizedAnswer(response, contentLength);
    response.onWritable(() => this.#onWritable());
  }

  /**
   * Sends a piece of a streamed answer. The bytes are taken over in any case.
   * @returns false when the client does not keep up: send nothing more until `onDrained`.
   */
  write(chunk: Buffer): boolean {
    const response = this.#response;
    if (response === null || chunk.length === 0) return true;
    this.bytesOut += chunk.length;
    if (this.#sized !== null) return this.#writeSized(response, this.#sized, chunk);
    if (this.#pending !== null) {
      this.#pending = Buffer.concat([this.#pending, chunk]);
      return false;
    }
    let flowing = true;
    response.cork(() => {
      if (this.#headLines !== null) this.#writeHead(response, this.#headLines);
      flowing = this.#writeBounded(response, chunk);
    });
    if (!flowing) this.#block();
    return flowing;
  }

  /** Ends a streamed answer, once its client has taken what waits. */
  end(): void {
    const response = this.#response;
    if (response === null) return;
    if (this.#sized !== null && this.bytesOut < this.#sized.length) {
      this.abort();
      return;
    }
    // uWS gives an ended response ten seconds to drain and then drops the rest: end only what has drained.
    if (this.#blocked) {
      this.#ending = true;
      return;
    }
    const lines = this.#headLines;
    this.#bodyStream?.discard();
    this.#finish();
    response.cork(() => {
      if (lines !== null) this.#writeHead(response, lines);
      response.end();
    });
  }

  /** Ends the exchange: its connection becomes something else. Null when the client has left. */
  handOver(status: number): HttpResponse | null {
    const response = this.#response;
    this.status = status;
    if (response !== null) this.#finish();
    return response;
  }

  /** Cuts the connection: the last resort when an answer can no longer be made whole. */
  abort(): void {
    const response = this.#response;
    if (response === null) return;
    this.#finish();
    response.close();
  }

  /**
   * Restarts uWS's timer, which cuts a client that takes nothing for ten seconds or sends less than 16 KB a second, until
   * its socket has drained or its body has ended. A reader that takes nothing for very long is given up after all.
   */
  override tend(): void {
    if (this.#blocked && ++this.#stalledRounds > mostStalledRounds) this.giveUp();
    else if (this.#response !== null && (this.#bodyStream?.mayRead() ?? true)) rearm(this.#response);
  }

  /** Cuts the connection of a client that will not come to an end, which has then left. */
  giveUp(): void {
    const { listener } = this;
    this.abort();
    listener?.onClientGone();
  }

  #writeHead(response: HttpResponse, lines: string): void {
    this.#headLines = null;
    // 200 is what uWS writes by itself.
    if (this.status !== 200) response.writeStatus(statusLines[this.status] ?? String(this.status));
    response.writeHeader('x-request-id', this.id + this.head.answerLines + lines);
  }

  /**
   * uWS buffers what the socket does not take and says, by a write, only whether anything is left. So after a stall one
   * byte is written first: while it meets a backlog, the rest of the chunk waits here, and that is never more than one.
   */
  #writeBounded(response: HttpResponse, chunk: Buffer): boolean {
    if (this.#backlog) {
      if (!response.write(chunk.subarray(0, 1))) {
        this.#pending = chunk.length > 1 ? Buffer.from(chunk.subarray(1)) : null;
        return false;
      }
      this.#backlog = false;
      if (chunk.length === 1) return true;
      chunk = chunk.subarray(1);
    }
    if (response.write(chunk)) return true;
    this.#backlog = true;
    return false;
  }

  #writeSized(response: HttpResponse, sized: SizedAnswer, chunk: Buffer): boolean {
    if (this.bytesOut > sized.length) {
      this.abort();
      return true;
    }
    if (this.bytesOut === sized.length) this.#bodyStream?.discard();
    const lines = this.#headLines;
    const state = sized.write(chunk, lines === null ? null : () => this.#writeHead(response, lines));
    if (state === 'complete') this.#finish();
    else if (state === 'waiting') this.#block();
    return state !== 'waiting';
  }

  #block(): void {
    this.#blocked = true;
    this.#host.tended.add(this);
  }

  #onWritable(): boolean {
    const response = this.#response;
    if (response === null) return true;
    this.#stalledRounds = 0;
    if (this.#sized !== null && this.#blocked) return this.#onSizedWritable(this.#sized.flush());
    // An empty cork flushes the backlog; with this handler set uWS does not flush by itself.
    response.cork(() => {});
    if (!this.#blocked) return true;
    const pending = this.#pending;
    if (pending !== null) {
      this.#pending = null;
      let flowing = true;
      response.cork(() => {
        flowing = this.#writeBounded(response, pending);
      });
      if (!flowing) return true;
    }
    this.#unblock();
    if (this.#ending) this.end();
    else this.listener?.onDrained();
    return true;
  }

  #onSizedWritable(state: SizedState): boolean {
    if (state === 'waiting') return false;
    const listener = this.#ending ? null : this.listener;
    if (state === 'complete') this.#finish();
    else this.#unblock();
    listener?.onDrained();
    return true;
  }

  #unblock(): void {
    this.#blocked = false;
    if (!this.#bodyPending) this.#host.tended.remove(this);
  }

  #onAborted(): void {
    if (this.#response === null) return;
    const listener = this.listener;
    this.#finish();
    listener?.onClientGone();
  }

  #finish(): void {
    const host = this.#host;
    host.tended.remove(this);
    this.#response = null;
    this.#pending = null;
    this.#sized = null;
    this.#bodyStream?.drop();
    this.#bodyStream = null;
    this.listener = null;
    host.open--;
    if (host.open === 0) host.onIdle?.();
  }
}
