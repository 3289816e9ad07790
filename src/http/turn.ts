import type { HttpResponse } from 'uWebSockets.js';
import { firstEventEnd, lastEventEnd, parseEvent } from '../wire/sse.js';
import { Exchange } from './exchange.js';
import type { RequestHead } from './request-head.js';
import type { ClientSocket, SocketOffer } from './socket.js';

/** A request that came as a message of a WebSocket. */
export interface TurnRequest {
  readonly method: string;
  readonly path: string;
  /** Of the request itself: its length and content type. */
  readonly head: RequestHead;
  readonly id: string;
  readonly body: Buffer;
}

/** What a turn's answer becomes, as messages. */
export interface TurnWords {
  /** A whole answer, as JSON text; errors have a status from 400 on. */
  whole(status: number, body: string): string;
  /** The last word of an answer that was cut. */
  readonly cut: string;
}

/** Who has a turn served. */
export interface TurnOwner {
  readonly words: TurnWords;
  /** Is called with the exchange, as for a request. */
  serve(exchange: Exchange): void;
  /** Hears of every event of the answer, as JSON text. */
  onEvent(event: string): void;
  /** The answer has ended. */
  onEnd(): void;
}

/** A turn under way. */
export interface Turn {
  /** Has the exchange hear that its client has left. */
  leave(): void;
  /** The client has taken what waited for it. */
  drained(): void;
}

/** An unfinished event that is longer is no event. */
const longestEvent = 64 * 1024 * 1024;

/**
 * Makes an exchange of a message: its request body is the message, and the events of the stream that answers it leave
 * as messages, each with the data of one.
 */
export function startTurn(
  socket: ClientSocket,
  { host }: SocketOffer,
  request: TurnRequest,
  owner: TurnOwner,
): Turn {
  const response = new TurnResponse(socket, owner);
  const { method, path, head, id } = request;
  const exchange = new Exchange(response as unknown as HttpResponse, method, path, head, id, host);
  owner.serve(exchange);
  response.feed(request.body);
  return {
    leave: () => response.leave(),
    drained: () => response.drained(),
  };
}

/** The part of uWS's response that an exchange uses, over a WebSocket in place of a connection. */
class TurnResponse {
  readonly #socket: ClientSocket;
  readonly #owner: TurnOwner;
  #onAborted: () => void = () => {};
  #onWritable: (offset: number) => boolean = () => true;
  #onData: ((chunk: ArrayBuffer, isLast: boolean) => void) | null = null;
  #status = 200;
  /** Of an event whose end has not come. */
  #rest: Buffer | null = null;
  #over = false;
  #written = 0;

  constructor(socket: ClientSocket, owner: TurnOwner) {
    this.#socket = socket;
    this.#owner = owner;
  }

  feed(body: Buffer): void {
    const { buffer, byteOffset, byteLength } = body;
    this.#onData?.(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer, true);
  }

  leave(): void {
    if (this.#over) return;
    this.#over = true;
    this.#onAborted();
  }

  drained(): void {
    if (!this.#over) this.#onWritable(this.#written);
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler;
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#onWritable = handler;
  }

  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    this.#onData = handler;
  }

  cork(work: () => void): void {
    work();
  }

  pause(): void {}

  resume(): void {}

  writeStatus(status: string): this {
    this.#status = Number.parseInt(status, 10);
    return this;
  }

  writeHeader(): this {
    return this;
  }

  getWriteOffset(): number {
    return this.#written;
  }

  /** @returns false when the client does not keep up */
  write(chunk: Buffer): boolean {
    this.#written += chunk.length;
    const bytes = this.#rest === null ? chunk : Buffer.concat([this.#rest, chunk]);
    const end = lastEventEnd(bytes, 0, bytes.length);
    this.#rest = end === bytes.length ? null : Buffer.from(bytes.subarray(end));
    if (this.#rest !== null && this.#rest.length > longestEvent) {
      this.close();
      return true;
    }
    let flowing = true;
    for (let from = 0; from < end; ) {
      const next = firstEventEnd(bytes, from, end);
      const to = next === -1 ? end : next;
      if (!this.#sendEvent(bytes.toString('utf8', from, to))) flowing = false;
      from = to;
    }
    return flowing;
  }

  end(body?: string | Buffer): void {
    if (body !== undefined && body.length > 0) this.#sendWhole(body);
    this.#finish();
  }

  /** A whole answer leaves as one message: however large, it is taken over. */
  tryEnd(body: Buffer, total: number): [boolean, boolean] {
    this.#written += body.length;
    if (this.#written < total) return [true, false];
    this.end(body);
    return [true, true];
  }

  endWithoutBody(): void {
    this.#finish();
  }

  /** An answer that cannot be made whole. */
  close(): void {
    if (this.#over) return;
    this.#socket.send(this.#owner.words.cut, false);
    this.#finish();
  }

  #sendEvent(text: string): boolean {
    const { data } = parseEvent(text);
    if (data === null || data === '[DONE]') return true;
    this.#owner.onEvent(data);
    return this.#socket.send(data, false);
  }

  #sendWhole(body: string | Buffer): void {
    const text = typeof body === 'string' ? body : body.toString('utf8');
    const event = this.#owner.words.whole(this.#status, text);
    this.#owner.onEvent(event);
    this.#socket.send(event, false);
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#owner.onEnd();
  }
}
