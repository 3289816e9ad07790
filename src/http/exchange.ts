import type { HttpResponse, us_socket_context_t } from 'uWebSockets.js';
import { type FaultPlace, type GatewayError, type Guarded, surfaceFault } from '../errors.js';
import { asksToClose, isBodyless, requestIdOf, requestSeries, type Writable } from '../wire/head.js';
import { type BodyCollector, type BodyPool, type BodyReceiver, collectBody } from './body.js';
import { type BodyStream, type BodyStreamReceiver, streamBody } from './body-stream.js';
import type { AnswerHead, ClientLink, LinkOwner } from './client-link.js';
import type { RequestHead } from './request-head.js';
import { type SweepList, Swept } from './sweep.js';

/** At four seconds a round, five minutes. */
const mostStalledSweeps = 75;

/**
 * One request and its answer: what was asked, how the answer stands, who hears of the client, and how long that may
 * take.
 *
 * `lines` must be complete header lines, each preceded by CRLF, with values that hold neither CR nor LF.
 */
export class Exchange extends Swept implements LinkOwner {
  readonly method: string;
  readonly path: string;
  readonly head: RequestHead;
  /** `req_` and hex: `x-request-id` of the answer. */
  readonly id: Writable;
  /** Of its id: see `requestIdOf`. Below zero for one that came as a message, whose id has none. */
  readonly number: number;
  listener: ExchangeListener | null = null;
  /** Hears of what one of its callbacks has thrown, and ends it; null until somebody takes it over. */
  owner: Guarded | null = null;
  /** Of a request that asks for a WebSocket: see `acceptSocket`. */
  offer: SocketOffer | null = null;
  /** Close the connection after the answer. */
  closing = false;
  bytesIn = 0;
  bytesOut = 0;
  /** Of a streamed answer, bytes that its client may not have taken: none, once it has taken all. */
  unreadBytes = 0;
  /** Hears when nothing can be sent any more: the client has all of the answer, or has left. */
  onOver: (() => void) | null = null;
  /** The answer's status once it was begun, else 0. */
  status = 0;
  /** Null once nothing can be sent any more. */
  #client: ClientLink | null;
  readonly #host: ExchangeHost;
  /** The client has to take what waits. */
  #blocked = false;
  /** Bytes of a streamed answer; -1 where that is not known. */
  #length = -1;
  #bodyStream: BodyStream | BodyCollector | null = null;
  #bodyPending = false;
  /** Sweeps since the client last took something. */
  #stalledSweeps = 0;
  /** Holds the request body, and goes back to the pool with `recycleBody`. */
  #bodyBuffer: Buffer | null = null;

  constructor(
    client: ClientLink,
    method: string,
    path: string,
    head: RequestHead,
    id: Writable | number,
    host: ExchangeHost,
  ) {
    super();
    this.method = method;
    this.path = path;
    this.head = head;
    this.closing = asksToClose(head.connection);
    this.number = typeof id === 'number' ? id : -1;
    this.id = typeof id === 'number' ? requestIdOf(requestSeries, id) : id;
    this.#client = client;
    this.#host = host;
    host.open++;
    host.served++;
    client.attach(this);
  }

  /** True while something can still be sent. */
  get alive(): boolean {
    return this.#client !== null;
  }

  /** True once an answer was begun, and when none can be any more. */
  get isAnswered(): boolean {
    return this.#client === null || this.status !== 0;
  }

  /** True while the client has to take what waits before anything more can be sent. */
  get isBlocked(): boolean {
    return this.#blocked;
  }

  /**
   * Collects the request body; must be called before the handler of the request returns.
   * @param waits nothing is handed on before `resumeBody`, and little is read
   */
  readBody(limit: number, receiver: BodyReceiver, waits = false): void {
    const client = this.#client;
    if (client !== null) this.#bodyStream = collectBody(this, client, { limit, receiver, waits });
  }

  /**
   * Hands the request body on as it comes, at most `limit` bytes; must be called before the handler of the request
   * returns. A client may be silent for as long as the owner of the exchange lets it.
   * @param waits nothing is handed on before `resumeBody`, and little is read
   */
  streamBody(limit: number, receiver: BodyStreamReceiver, waits = false): void {
    const client = this.#client;
    if (client === null) return;
    const pool = this.#host.bodies;
    this.#bodyStream = streamBody(this, client, { limit, pool, receiver, waits });
  }

  /** After `onChunk` has said false, or for a body that waits: go on, now or as soon as it has returned. */
  resumeBody(): void {
    this.#bodyStream?.resume();
  }

  /** While some of the body has yet to come, keeps uWS from cutting a client that sends less than 16 KB a second. */
  bodyExpected(): void {
    this.#bodyPending = true;
    this.#host.sweepList.add(this);
  }

  /** All of the body has come. */
  bodyComplete(): void {
    this.#bodyPending = false;
    if (!this.#blocked) this.#host.sweepList.remove(this);
  }

  /**
   * @param start what it begins with: a part of the room that was given out before, which is given back
   * @returns room for a body of exactly so many bytes
   */
  bodyBuffer(bytes: number, start: Buffer | null = null): Buffer {
    const before = this.#bodyBuffer;
    const pooled = this.#host.bodies.take(bytes);
    this.#bodyBuffer = pooled;
    const room = pooled === null ? Buffer.allocUnsafe(bytes) : partOf(pooled, bytes);
    if (start !== null) room.set(start);
    if (before !== null) this.#host.bodies.give(before);
    return room;
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
    const client = this.#client;
    if (client === null) return true;
    if (this.method === 'HEAD' || isBodyless(status)) {
      this.respondEmpty(status, lines, isBodyless(status) ? null : Buffer.byteLength(body));
      return true;
    }
    this.bytesOut = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    this.#bodyStream?.discard();
    const isTaken = client.respond(this.#head(status, lines), body);
    if (!isTaken) this.onBlocked();
    return isTaken;
  }

  /**
   * Answers without a body: 204, 304, and all that is asked with HEAD.
   * @param contentLength bytes that the answer to GET would have, or null to name no length
   */
  respondEmpty(status: number, lines: string, contentLength: number | null): void {
    const client = this.#client;
    if (client === null) return;
    this.bytesOut = 0;
    this.#bodyStream?.discard();
    this.listener = null;
    client.respondEmpty(this.#head(status, lines), contentLength);
  }

  /**
   * Begins a streamed answer. The head leaves with the first `write`.
   * @param contentLength bytes of the answer, or -1 for a chunked one. With a length, the exchange has ended as soon as
   * the last byte was taken; more bytes, or an end with fewer, cut the connection.
   */
  begin(status: number, lines: string, contentLength = -1): void {
    const client = this.#client;
    if (client === null) return;
    this.#length = contentLength;
    client.begin(this.#head(status, lines), contentLength);
  }

  /**
   * Sends a piece of a streamed answer. The bytes are taken over in any case.
   * @returns false when the client does not keep up: send nothing more until `onDrained`.
   */
  write(chunk: Buffer): boolean {
    const client = this.#client;
    if (client === null || chunk.length === 0) return true;
    this.bytesOut += chunk.length;
    if (this.#length >= 0 && this.bytesOut >= this.#length) {
      if (this.bytesOut > this.#length) {
        this.abort();
        return true;
      }
      this.#bodyStream?.discard();
    }
    const isTaken = client.write(chunk);
    if (isTaken) return true;
    this.unreadBytes += chunk.length;
    this.onBlocked();
    return false;
  }

  /** Ends a streamed answer, once its client has taken what waits. */
  end(): void {
    if (this.bytesOut < this.#length) {
      this.abort();
      return;
    }
    this.#bodyStream?.discard();
    this.#client?.end();
  }

  /** Ends a streamed answer that is not whole: once its client has been sent what waits, the connection breaks. */
  endTruncated(): void {
    this.#bodyStream?.discard();
    if (this.#client?.endTruncated() === false) this.onBlocked();
  }

  /** Ends the exchange: its connection becomes something else. @returns false when the client has left */
  handOver(): boolean {
    const isThere = this.alive;
    this.status = 101;
    if (isThere) this.#finish();
    return isThere;
  }

  /** Cuts the connection: the last resort when an answer can no longer be made whole. */
  abort(): void {
    this.#bodyStream?.drop();
    this.#bodyStream = null;
    this.#client?.abort();
  }

  /**
   * uWS cuts a client that takes nothing for ten seconds or sends less than 16 KB a second: gives it more time, until
   * its socket has drained or its body has ended. A reader that takes nothing for very long is given up.
   */
  override onSweep(): void {
    if (this.#blocked && ++this.#stalledSweeps > mostStalledSweeps) this.cut();
    else if (this.#bodyStream?.mayRead() ?? true) this.#client?.rearm();
  }

  /** Cuts the connection of a client that will not come to an end, which has then left. */
  cut(): void {
    const { listener } = this;
    this.abort();
    listener?.onClientGone();
  }

  override onFault(where: FaultPlace, fault: unknown): void {
    if (this.owner !== null) {
      this.owner.onFault(where, fault);
      return;
    }
    surfaceFault(fault);
    this.abort();
  }

  onProgress(): void {
    this.#stalledSweeps = 0;
  }

  onBlocked(): void {
    this.#blocked = true;
    this.#host.sweepList.add(this);
  }

  onDrained(): void {
    this.#stalledSweeps = 0;
    this.#blocked = false;
    this.unreadBytes = 0;
    if (!this.#bodyPending) this.#host.sweepList.remove(this);
    this.listener?.onDrained();
  }

  onEnded(isDrained: boolean): void {
    const listener = isDrained ? this.listener : null;
    this.#finish();
    listener?.onDrained();
  }

  onGone(): void {
    if (this.#client === null) return;
    const { listener } = this;
    this.#finish();
    listener?.onClientGone();
  }

  #head(status: number, lines: string): AnswerHead {
    this.status = status;
    return {
      status,
      lines: this.id + this.head.answerLines + lines,
      closes: this.closing || this.#host.draining,
    };
  }

  #finish(): void {
    const host = this.#host;
    host.sweepList.remove(this);
    this.#client = null;
    this.#bodyStream?.drop();
    this.#bodyStream = null;
    this.listener = null;
    this.onOver?.();
    host.open--;
    if (host.open === 0) host.onIdle?.();
  }
}

/** The first bytes of a buffer, which is given as it is where that is all of it. */
function partOf(buffer: Buffer, bytes: number): Buffer {
  return buffer.length === bytes ? buffer : buffer.subarray(0, bytes);
}

/** What the owner of an exchange hears of its client. */
export interface ExchangeListener {
  /** The client left, or its connection broke. Nothing can be sent any more. */
  onClientGone(): void;
  /**
   * After `write` or `respond` has said false, or `isBlocked` has come later for what was held to the end of the turn: the
   * client has taken what waited, go on.
   */
  onDrained(): void;
  /** A fault of ours has ended what the answer is made of: says so, however much of the answer has left. */
  onOurFault?(error: GatewayError): void;
}

/** What the exchanges of one server share. */
export interface ExchangeHost {
  /** Exchanges whose client has not sent all of its body, or does not read at the moment. */
  readonly sweepList: SweepList;
  /** Answers carry `connection: close`. */
  draining: boolean;
  /** Exchanges and WebSockets that have not ended. */
  open: number;
  /** Exchanges since the start. */
  served: number;
  onIdle: (() => void) | null;
  readonly bodies: BodyPool;
}

/** What uWS needs to make a WebSocket of a request later. */
export interface SocketOffer {
  /** Of the request, until its exchange has ended. */
  readonly response: HttpResponse;
  readonly context: us_socket_context_t;
  readonly host: ExchangeHost;
}
