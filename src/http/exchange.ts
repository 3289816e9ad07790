import type { HttpResponse, us_socket_context_t } from 'uWebSockets.js';
import { type FaultPlace, type GatewayError, type Guarded, surfaceFault } from '../errors.js';
import { asksToClose, isBodyless, requestIdOf, requestSeries, type Writable } from '../wire/head.js';
import { type BodyCollector, type BodyPool, type BodyReceiver, collectBody } from './body.js';
import { type BodyStream, type BodyStreamReceiver, streamBody } from './body-stream.js';
import type { AnswerHead, ClientLink, LinkOwner } from './client-link.js';
import type { RequestHead } from './request-head.js';
import { type SweepList, SweepMember } from './sweep.js';

/** Five minutes, at one sweep every four seconds. */
const mostStalledSweeps = 75;

/**
 * One request and its response: the request, the state of the response, the listener for client events, and time
 * limits.
 *
 * `lines` parameters are complete header lines, each preceded by CRLF. Their values contain neither CR nor LF.
 */
export class Exchange extends SweepMember implements LinkOwner {
  readonly method: string;
  readonly path: string;
  readonly head: RequestHead;
  /** `req_` and hexadecimal digits: the `x-request-id` of the response. */
  readonly id: Writable;
  /** The number in its id: see `requestIdOf`. Below zero for a request that arrived as a WebSocket message. */
  readonly number: number;
  listener: ExchangeListener | null = null;
  /** Handles exceptions of its callbacks and ends it; null until a call takes the exchange over. */
  owner: Guarded | null = null;
  /** Set for a request to open a WebSocket: see `acceptSocket`. */
  offer: SocketOffer | null = null;
  /** Close the connection after the response. */
  closing = false;
  bytesIn = 0;
  bytesOut = 0;
  /** Bytes of a streamed response that the client may not have read yet. */
  unreadBytes = 0;
  /** Called when nothing can be sent any more: the client has the whole response, or has disconnected. */
  onOver: (() => void) | null = null;
  /** Status of the response once it has begun, else 0. */
  status = 0;
  /** Null when nothing can be sent any more. */
  #client: ClientLink | null;
  readonly #host: ExchangeHost;
  /** The client has to read what waits first. */
  #blocked = false;
  /** Length of a streamed response; -1 if unknown. */
  #length = -1;
  #bodyStream: BodyStream | BodyCollector | null = null;
  #bodyPending = false;
  /** Sweeps since the client last read something. */
  #stalledSweeps = 0;
  /** Buffer of the request body. `recycleBody` returns it to the pool. */
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

  /** True when a response has begun, or none can be sent any more. */
  get isAnswered(): boolean {
    return this.#client === null || this.status !== 0;
  }

  /** True while the client has to read what waits before more can be sent. */
  get isBlocked(): boolean {
    return this.#blocked;
  }

  /**
   * Collects the request body. Must be called before the handler of the request returns.
   * @param waits deliver nothing before `resumeBody`, and read little
   */
  readBody(limit: number, receiver: BodyReceiver, waits = false): void {
    const client = this.#client;
    if (client !== null) this.#bodyStream = collectBody(this, client, { limit, receiver, waits });
  }

  /**
   * Delivers the request body in pieces as it arrives, up to `limit` bytes. Must be called before the handler of the
   * request returns. How long the client may be silent is up to the owner of the exchange.
   * @param waits deliver nothing before `resumeBody`, and read little
   */
  streamBody(limit: number, receiver: BodyStreamReceiver, waits = false): void {
    const client = this.#client;
    if (client === null) return;
    const pool = this.#host.bodies;
    this.#bodyStream = streamBody(this, client, { limit, pool, receiver, waits });
  }

  /** Continues after `onChunk` has returned false, or for a body that waits. May be called from within `onChunk`. */
  resumeBody(): void {
    this.#bodyStream?.resume();
  }

  /** While the body is incomplete, keeps uWS from closing a connection on which less than 16 KB a second arrive. */
  bodyExpected(): void {
    this.#bodyPending = true;
    this.#host.sweepList.add(this);
  }

  /** Called when the whole body has arrived. */
  bodyComplete(): void {
    this.#bodyPending = false;
    if (!this.#blocked) this.#host.sweepList.remove(this);
  }

  /**
   * @param start first bytes of the body, in the buffer that was returned before, which goes back to the pool
   * @returns a buffer for a body of exactly this size
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

  /** Releases the request body: it is no longer read, here or on its way to an upstream. */
  recycleBody(): void {
    if (this.#bodyBuffer !== null) this.#host.bodies.give(this.#bodyBuffer);
    this.#bodyBuffer = null;
  }

  /**
   * Sends a whole response. `lines` as described above, without `x-request-id`. Takes ownership of the bytes.
   * @returns false if the client does not take all of it immediately: `onDrained` follows when it has
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
   * Responds without a body: 204, 304, and every response to HEAD.
   * @param contentLength length of the response to GET, or null for none
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
   * Begins a streamed response. Its head is sent with the first `write`.
   * @param contentLength length of the response, or -1 for a chunked one. With a length, the exchange ends when the
   * last byte was taken. More bytes, or an end with fewer, close the connection.
   */
  begin(status: number, lines: string, contentLength = -1): void {
    const client = this.#client;
    if (client === null) return;
    this.#length = contentLength;
    client.begin(this.#head(status, lines), contentLength);
  }

  /**
   * Sends a piece of a streamed response. Takes ownership of the bytes.
   * @returns false if the client is too slow: send nothing more until `onDrained`
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

  /** Ends a streamed response once its client has read what waits. */
  end(): void {
    if (this.bytesOut < this.#length) {
      this.abort();
      return;
    }
    this.#bodyStream?.discard();
    this.#client?.end();
  }

  /** Ends an incomplete streamed response: closes the connection once what waits has been sent. */
  endTruncated(): void {
    this.#bodyStream?.discard();
    if (this.#client?.endTruncated() === false) this.onBlocked();
  }

  /** Ends the exchange because its connection becomes a WebSocket. @returns false if the client has disconnected */
  handOver(): boolean {
    const isThere = this.alive;
    this.status = 101;
    if (isThere) this.#finish();
    return isThere;
  }

  /** Closes the connection, when a response cannot be completed. */
  abort(): void {
    this.#bodyStream?.drop();
    this.#bodyStream = null;
    this.#client?.abort();
  }

  /**
   * uWS closes a connection whose client reads nothing for ten seconds, or sends less than 16 KB a second. This extends
   * that time until its socket has drained or its body has ended. A client that reads nothing for five minutes is
   * disconnected.
   */
  override onSweep(): void {
    if (this.#blocked && ++this.#stalledSweeps > mostStalledSweeps) this.cut();
    else if (this.#bodyStream?.mayRead() ?? true) this.#client?.rearm();
  }

  /** Closes the connection of a client that makes no progress, which counts as disconnected. */
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

/** Returns the first bytes of a buffer, or the buffer itself if that is all of it. */
function partOf(buffer: Buffer, bytes: number): Buffer {
  return buffer.length === bytes ? buffer : buffer.subarray(0, bytes);
}

/** Receives the events of an exchange's client. */
export interface ExchangeListener {
  /** The client has disconnected. Nothing can be sent any more. */
  onClientGone(): void;
  /**
   * The client has read what waited, so more can be sent. Called after `write` or `respond` has returned false, or
   * `isBlocked` has become true at the end of the turn.
   */
  onDrained(): void;
  /** An internal error has ended the source of the response. Reports it to the client as far as that is possible. */
  onOurFault?(error: GatewayError): void;
}

/** State that the exchanges of one server share. */
export interface ExchangeHost {
  /** Exchanges whose client has not sent its whole body, or does not read at the moment. */
  readonly sweepList: SweepList;
  /** Responses have `connection: close`. */
  draining: boolean;
  /** Exchanges and WebSockets that have not ended. */
  open: number;
  /** Exchanges since the start. */
  served: number;
  onIdle: (() => void) | null;
  readonly bodies: BodyPool;
}

/** What uWS needs to upgrade a request to a WebSocket later. */
export interface SocketOffer {
  /** The response object of the request, until its exchange has ended. */
  readonly response: HttpResponse;
  readonly context: us_socket_context_t;
  readonly host: ExchangeHost;
}
