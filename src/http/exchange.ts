import type { HttpResponse } from 'uWebSockets.js';
import { STATUS_CODES } from 'node:http';
import type { BodyReceiver } from './body.js';
import { collectBody } from './body.js';
import type { BodyPool } from './body-pool.js';
import type { RequestHead } from './request-head.js';

/** What the owner of an exchange hears of its client. */
export interface ExchangeListener {
  /** The client left, or its connection broke. Nothing can be sent any more. */
  onClientGone(): void;
  /** After `write` has said false: the client has taken what waited, go on. */
  onDrained(): void;
}

/** What the exchanges of one server share. */
export interface ExchangeHost {
  /** Exchanges whose client does not read at the moment; `server.ts` keeps uWS from cutting them. */
  readonly blocked: Set<Exchange>;
  /** Answers carry `connection: close`. */
  draining: boolean;
  /** Exchanges that have not ended. */
  open: number;
  /** Exchanges since the start. */
  served: number;
  onIdle: (() => void) | null;
  readonly bodies: BodyPool;
}

/** Whole answers up to this size leave in one go: they fit into any socket's buffer. */
const directBytes = 16 * 1024;
/** At four seconds a round, five minutes. */
const mostStalledRounds = 75;

const statusLines: string[] = [];
for (const [code, reason] of Object.entries(STATUS_CODES)) statusLines[Number(code)] = `${code} ${reason}`;

/**
 * One request and its answer, and the one place that knows uWS's rules: the response is never touched after an
 * abort or an end, everything is written inside `cork`, and what uWS buffers stays bounded.
 *
 * Header lines are handed to uWS as the tail of one value (`id CRLF name: value CRLF …`): one crossing into C++
 * instead of one a header. So `lines` must be complete header lines, each preceded by CRLF, with values that hold
 * neither CR nor LF.
 */
export class Exchange {
  readonly method: string;
  readonly path: string;
  readonly head: RequestHead;
  /** `req_` and hex: `x-request-id` of the answer. */
  readonly id: string;
  listener: ExchangeListener | null = null;
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
  /** What the client has not taken of a large whole answer. */
  #rest: Buffer | null = null;
  /** Rounds of `keepAlive` since the client last took something. */
  #stalledRounds = 0;
  /** Holds the request body, and goes back to the pool with `recycleBody`. */
  #bodyBuffer: Buffer | null = null;

  constructor(
    response: HttpResponse,
    method: string,
    path: string,
    head: RequestHead,
    id: string,
    host: ExchangeHost,
  ) {
    this.method = method;
    this.path = path;
    this.head = head;
    this.id = id;
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

  /** Collects the request body; must be called before the handler of the request returns. */
  readBody(limit: number, receiver: BodyReceiver): void {
    if (this.#response !== null) collectBody(this, this.#response, limit, receiver);
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
    this.status = status;
    this.bytesOut = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    const close = this.closing || this.#host.draining;
    if (this.bytesOut > directBytes && this.method !== 'HEAD') {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      return this.#respondLarge(response, lines, bytes, close);
    }
    this.#finish();
    response.cork(() => {
      this.#writeHead(response, lines);
      if (this.method === 'HEAD') response.endWithoutBody(this.bytesOut, close);
      else response.end(body, close);
    });
    return true;
  }

  /** uWS gives what waits of an ended response ten seconds to drain: what the socket does not take waits here. */
  #respondLarge(response: HttpResponse, lines: string, body: Buffer, close: boolean): boolean {
    response.onWritable(() => this.#onWritable());
    let done = false;
    response.cork(() => {
      this.#writeHead(response, close ? `${lines}\r\nconnection: close` : lines);
      done = response.tryEnd(body, body.length)[1];
    });
    if (done) {
      this.#finish();
      return true;
    }
    this.#rest = Buffer.from(body.subarray(response.getWriteOffset()));
    this.#block();
    return false;
  }

  /**
   * Begins a streamed answer. The head leaves with the first `write`. In a drain it asks the client to close, since
   * uWS can say so only at the end, where it would write a header line into the body.
   */
  begin(status: number, lines: string): void {
    const response = this.#response;
    if (response === null) return;
    this.status = status;
    this.#headLines = this.closing || this.#host.draining ? `${lines}\r\nconnection: close` : lines;
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
    // uWS gives an ended response ten seconds to drain and then drops the rest: end only what has drained.
    if (this.#blocked) {
      this.#ending = true;
      return;
    }
    const lines = this.#headLines;
    this.#finish();
    response.cork(() => {
      if (lines !== null) this.#writeHead(response, lines);
      response.end();
    });
  }

  /** Cuts the connection: the last resort when an answer can no longer be made whole. */
  abort(): void {
    const response = this.#response;
    if (response === null) return;
    this.#finish();
    response.close();
  }

  /**
   * Restarts uWS's timer for a socket under backpressure, which would cut a reader that takes nothing for ten
   * seconds; `resume` arms it anew, and a drained socket disarms it. A reader that takes nothing for very long is
   * given up after all.
   */
  keepAlive(): void {
    if (++this.#stalledRounds > mostStalledRounds) {
      const { listener } = this;
      this.abort();
      listener?.onClientGone();
      return;
    }
    this.#response?.pause();
    this.#response?.resume();
  }

  #writeHead(response: HttpResponse, lines: string): void {
    this.#headLines = null;
    // 200 is what uWS writes by itself.
    if (this.status !== 200) response.writeStatus(statusLines[this.status] ?? String(this.status));
    response.writeHeader('x-request-id', this.id + lines);
  }

  /**
   * uWS buffers whatever the socket does not take and does not say how much is left, only, by a write, whether
   * anything is. So after a stall one byte is written first; as long as it meets a backlog, the rest of the
   * chunk waits here, and the backlog never exceeds one chunk.
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

  #block(): void {
    this.#blocked = true;
    this.#host.blocked.add(this);
  }

  #onWritable(): boolean {
    const response = this.#response;
    if (response === null) return true;
    this.#stalledRounds = 0;
    if (this.#rest !== null) return this.#writeRest(response, this.#rest);
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
    this.#blocked = false;
    this.#host.blocked.delete(this);
    if (this.#ending) this.end();
    else this.listener?.onDrained();
    return true;
  }

  #writeRest(response: HttpResponse, rest: Buffer): boolean {
    const before = response.getWriteOffset();
    const done = response.tryEnd(rest, this.bytesOut)[1];
    if (!done) {
      this.#rest = rest.subarray(response.getWriteOffset() - before);
      return false;
    }
    const { listener } = this;
    this.#finish();
    listener?.onDrained();
    return true;
  }

  #onAborted(): void {
    if (this.#response === null) return;
    const listener = this.listener;
    this.#finish();
    listener?.onClientGone();
  }

  #finish(): void {
    const host = this.#host;
    if (this.#blocked) host.blocked.delete(this);
    this.#response = null;
    this.#pending = null;
    this.#rest = null;
    this.listener = null;
    host.open--;
    if (host.open === 0) host.onIdle?.();
  }
}
