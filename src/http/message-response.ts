import { handFault } from '../errors.js';
import { fieldsOf, type Writable } from '../wire/head.js';
import { EventRuns, eventEnd, parseEvent } from '../wire/sse.js';
import type { AnswerHead, ChunkReceiver, ClientLink, LinkOwner } from './client-link.js';
import { Exchange, type SocketOffer } from './exchange.js';
import type { RequestHead } from './request-head.js';
import type { ClientSocket } from './socket.js';

/** A request that arrived as a WebSocket message. */
interface MessageRequest {
  readonly method: string;
  readonly path: string;
  /** Head of the request itself, with its length and content type. */
  readonly head: RequestHead;
  readonly id: Writable;
  readonly body: Buffer;
}

/** Formats the answer to a message as messages. */
export interface MessageWords {
  /**
   * Formats a whole answer as JSON text. Errors have a status of 400 or more.
   * @param headers headers that the response over HTTP would have, by name
   */
  whole(status: number, body: string, headers: Readonly<Record<string, string>>): string;
  /** The last message of an answer that was cut. */
  readonly cut: string;
}

/** Serves a message as a request, and receives the events of its answer. */
export interface MessageHandler {
  readonly words: MessageWords;
  /** Serves the exchange like that of a request. */
  serve(exchange: Exchange): void;
  /** Sets the number of bytes held of an unfinished event. @returns false if there is no memory for them */
  hold(bytes: number): boolean;
  /** Called with every event of the answer, as JSON text. */
  onEvent(event: string): void;
  /** Called when the answer has ended. */
  onEnd(): void;
}

/** The client of a message that is being answered. The owner of the socket reports its events here. */
export interface MessageClient {
  /** Notifies the exchange that its client has disconnected. */
  leave(): void;
  /** To be called when the client has read what waited. */
  drained(): void;
}

/** Longest unfinished event, in bytes. A longer one ends the answer. */
const longestEvent = 64 * 1024 * 1024;

/**
 * Creates an exchange for a message, which becomes its request body. The events of the answering stream are sent as
 * messages, each with the data of one event.
 */
export function serveMessage(
  socket: ClientSocket,
  { host }: SocketOffer,
  request: MessageRequest,
  handler: MessageHandler,
): MessageClient {
  const client = new MessageResponse(socket, handler);
  const { method, path, head, id } = request;
  handler.serve(new Exchange(client, method, path, head, id, host));
  client.feed(request.body);
  return client;
}

/** The client side of a request that arrived as a message. Sends the answer over the WebSocket. */
class MessageResponse implements ClientLink, MessageClient {
  readonly #socket: ClientSocket;
  readonly #handler: MessageHandler;
  #owner: LinkOwner | null = null;
  #receiver: ChunkReceiver | null = null;
  readonly #runs = new EventRuns(longestEvent);
  #isOver = false;
  #blocked = false;
  #ending = false;

  constructor(socket: ClientSocket, handler: MessageHandler) {
    this.#socket = socket;
    this.#handler = handler;
  }

  attach(owner: LinkOwner): void {
    this.#owner = owner;
  }

  read(receiver: ChunkReceiver): void {
    this.#receiver = receiver;
  }

  feed({ buffer, byteOffset, byteLength }: Buffer): void {
    if (this.#isOver) return;
    const bytes = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
    this.#guarded(() => this.#receiver?.onChunk(bytes, true));
  }

  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#guarded((owner) => owner.onGone());
  }

  drained(): void {
    if (this.#isOver || !this.#blocked) return;
    this.#blocked = false;
    this.#guarded((owner) => {
      if (this.#ending) this.end();
      else owner.onDrained();
    });
  }

  /** No-op, as is `rearm`: a message arrives whole, so there is nothing to pause, and no timer. */
  pause(): void {}

  rearm(): void {}

  /** Sends a whole answer as one message, however large it is. */
  respond({ status, lines }: AnswerHead, body: string | Buffer): boolean {
    this.#owner?.onEnded(false);
    if (body.length > 0) {
      const event = this.#handler.words.whole(
        status,
        body.toString(),
        Object.fromEntries(fieldsOf(`x-request-id: ${lines}\r\n`)),
      );
      this.#handler.onEvent(event);
      this.#socket.send(event);
    }
    this.#finish();
    return true;
  }

  respondEmpty(): void {
    this.#owner?.onEnded(false);
    this.#finish();
  }

  begin(): void {}

  write(chunk: Buffer): boolean {
    if (this.#isOver) return true;
    const events = this.#runs.push(chunk);
    if (this.#runs.overlong || !this.#handler.hold(this.#runs.held)) {
      this.#cut();
      // Deferred, since the writer expects no call during `write`.
      setImmediate(() => this.#guarded((owner) => owner.onGone()));
      return true;
    }
    if (events === null) return true;
    let flowing = true;
    for (let from = 0; from < events.length; ) {
      const to = eventEnd(events, from);
      if (!this.#sendEvent(events.toString('utf8', from, to))) flowing = false;
      from = to;
    }
    if (!flowing) this.#blocked = true;
    return flowing;
  }

  end(): void {
    // The next message is answered when the client has read this answer.
    if (this.#blocked && !this.#isOver) {
      this.#ending = true;
      return;
    }
    this.#owner?.onEnded(false);
    this.#finish();
  }

  /** Ends normally: each message says what it is, and the last of a failed answer reports the failure. */
  endTruncated(): boolean {
    this.end();
    return true;
  }

  abort(): void {
    this.#owner?.onEnded(false);
    this.#cut();
  }

  #sendEvent(text: string): boolean {
    const { data } = parseEvent(text);
    if (data === null || data === '[DONE]') return true;
    this.#handler.onEvent(data);
    return this.#socket.send(data);
  }

  #cut(): void {
    if (this.#isOver) return;
    this.#socket.send(this.#handler.words.cut);
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onEnd();
  }

  #guarded(work: (owner: LinkOwner) => void): void {
    const owner = this.#owner;
    if (owner === null) return;
    try {
      work(owner);
    } catch (fault) {
      handFault(owner, 'request', fault);
    }
  }
}
