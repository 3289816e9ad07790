import { handFault } from '../errors.js';
import { fieldsOf, type Writable } from '../wire/head.js';
import { EventRuns, eventEnd, parseEvent } from '../wire/sse.js';
import type { AnswerHead, ChunkReceiver, ClientLink, LinkOwner } from './client-link.js';
import { Exchange, type SocketOffer } from './exchange.js';
import type { RequestHead } from './request-head.js';
import type { ClientSocket } from './socket.js';

/** A request that came as a message of a WebSocket. */
interface MessageRequest {
  readonly method: string;
  readonly path: string;
  /** Of the request itself: its length and content type. */
  readonly head: RequestHead;
  readonly id: Writable;
  readonly body: Buffer;
}

/** What the answer to a message becomes, as messages. */
export interface MessageWords {
  /**
   * A whole answer, as JSON text; errors have a status from 400 on.
   * @param headers that the answer to a request over HTTP would have, by their names
   */
  whole(status: number, body: string, headers: Readonly<Record<string, string>>): string;
  /** The last word of an answer that was cut. */
  readonly cut: string;
}

/** Who has a message served as a request. */
export interface MessageHandler {
  readonly words: MessageWords;
  /** Is called with the exchange, as for a request. */
  serve(exchange: Exchange): void;
  /** Says how many bytes of an unfinished event are held. @returns false when there is no room for so many */
  hold(bytes: number): boolean;
  /** Hears of every event of the answer, as JSON text. */
  onEvent(event: string): void;
  /** The answer has ended. */
  onEnd(): void;
}

/** The client of a message that is being answered, as its socket tells of it. */
export interface MessageClient {
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

/** The client of a request that came as a message: it is answered over a WebSocket in place of a connection. */
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

  /** A message has come as a whole: there is nothing to stop, and no time of its own to keep to. */
  pause(): void {}

  rearm(): void {}

  /** A whole answer leaves as one message: however large, it is taken over. */
  respond({ status, lines }: AnswerHead, body: string | Buffer): boolean {
    this.#owner?.onEnded(false);
    if (body.length > 0) {
      const event = this.#handler.words.whole(
        status,
        body.toString(),
        Object.fromEntries(fieldsOf(`x-request-id: ${lines}\r\n`)),
      );
      this.#handler.onEvent(event);
      this.#socket.send(event, false);
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
      // Later: who writes expects no call yet.
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
    // The next message is answered once the client has taken this answer.
    if (this.#blocked && !this.#isOver) {
      this.#ending = true;
      return;
    }
    this.#owner?.onEnded(false);
    this.#finish();
  }

  /** Of an answer in messages each says what it is: one that has failed has its last. */
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
    return this.#socket.send(data, false);
  }

  #cut(): void {
    if (this.#isOver) return;
    this.#socket.send(this.#handler.words.cut, false);
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
