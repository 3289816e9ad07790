import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_socket_context_t,
  WebSocket,
  WebSocketBehavior,
} from 'uWebSockets.js';
import type { Exchange } from './exchange.js';
import type { ExchangeHost } from './exchange-host.js';

/** What the owner of a client's WebSocket hears of it. */
export interface ClientSocketListener {
  /** A whole message. The bytes are valid only until the call returns. */
  onMessage(data: Buffer, isBinary: boolean): void;
  /** The client does not take at once what is sent: nothing more should be, until `onDrained`. */
  onBlocked(): void;
  /** The client has taken what waited. */
  onDrained(): void;
  /** The socket has ended, by either side; nothing is called after it. 1006: without a close frame. */
  onClosed(code: number, reason: string): void;
}

/** Limits that hold for every socket of a server, as long as it runs. */
export interface SocketLimits {
  /** Largest message that is told of, in bytes; the owner of a socket may take less. */
  readonly messageBytes: number;
  /** Silence after which a client that answers no ping is given up, in seconds: 8 to 960. */
  readonly idleSeconds: number;
}

/** What uWS needs to make a WebSocket of a request later. */
export interface SocketOffer {
  readonly context: us_socket_context_t;
  readonly host: ExchangeHost;
}

interface Message {
  readonly data: Buffer | string;
  readonly isBinary: boolean;
}

interface SocketData {
  readonly socket: ClientSocket;
}

const noBytes = Buffer.alloc(0);

/**
 * A client's WebSocket (RFC 6455). uWS joins fragments, answers pings, sends its own, and checks that text is UTF-8. It
 * cannot be told to stop reading: what comes has to be taken.
 */
export class ClientSocket {
  readonly #listener: ClientSocketListener;
  readonly #host: ExchangeHost;
  #socket: WebSocket<SocketData> | null = null;
  #blocked = false;
  #waiting: Message[] = [];

  constructor(listener: ClientSocketListener, host: ExchangeHost) {
    this.#listener = listener;
    this.#host = host;
  }

  /**
   * Sends a message. The bytes are taken over, and must not change any more. They leave when the callback that is
   * running has ended, together with what else it sends.
   * @returns false when the client does not keep up
   */
  send(data: Buffer | string, isBinary: boolean): boolean {
    if (this.#waiting.length === 0) process.nextTick(flush, this);
    this.gather(data, isBinary);
    return !this.#blocked;
  }

  /** Sends a message with the next `flush`, until when its bytes must not change. */
  gather(data: Buffer | string, isBinary: boolean): void {
    if (this.#socket !== null) this.#waiting.push({ data, isBinary });
  }

  /** Hands what was sent to the system. */
  flush(): void {
    const socket = this.#socket;
    const waiting = this.#waiting;
    if (socket === null || waiting.length === 0) return;
    if (waiting.length === 1) sendAll(socket, waiting);
    else socket.cork(() => sendAll(socket, waiting));
    waiting.length = 0;
    // The owner of a socket may end it in its callbacks, and nobody but uWS.
    if (this.#blocked || this.#socket === null || socket.getBufferedAmount() === 0) return;
    this.#blocked = true;
    this.#listener.onBlocked();
  }

  /** Sends a close frame and ends the connection; `onClosed` follows, perhaps at once. */
  close(code: number, reason: string): void {
    this.flush();
    this.#socket?.end(code, reason);
  }

  /** Called when the connection has become one of WebSocket. */
  opened(socket: WebSocket<SocketData>): void {
    this.#socket = socket;
    this.#host.open++;
  }

  heard(message: ArrayBuffer, isBinary: boolean): void {
    if (this.#socket === null) return;
    this.#listener.onMessage(message.byteLength === 0 ? noBytes : Buffer.from(message), isBinary);
  }

  drained(): void {
    if (!this.#blocked || this.#socket === null || this.#socket.getBufferedAmount() > 0) return;
    this.#blocked = false;
    this.#listener.onDrained();
  }

  ended(code: number, reason: string): void {
    this.#socket = null;
    this.#waiting = [];
    const host = this.#host;
    host.open--;
    this.#listener.onClosed(code, reason);
    if (host.open === 0) host.onIdle?.();
  }
}

function flush(socket: ClientSocket): void {
  socket.flush();
}

function sendAll(socket: WebSocket<SocketData>, messages: readonly Message[]): void {
  for (const { data, isBinary } of messages) socket.send(data, isBinary, false);
}

/**
 * Makes a WebSocket of an exchange whose request asked for one, in place of an answer: the exchange has then ended.
 * @param protocol the subprotocol that is agreed on; empty for none
 * @returns null when the client has left
 */
export function acceptSocket(
  exchange: Exchange,
  protocol: string,
  listener: ClientSocketListener,
): ClientSocket | null {
  const { offer, head, id } = exchange;
  if (offer === null) throw new Error('the request asks for no WebSocket');
  const response = exchange.handOver(101);
  if (response === null) return null;
  const socket = new ClientSocket(listener, offer.host);
  response.cork(() => response.writeStatus('101 Switching Protocols').writeHeader('x-request-id', id));
  // Not inside `cork`, the one exception: when the socket stays where it is in memory, uWS goes on after the callback as
  // if it were a response still, and what it then takes for its state may say that the connection is to be closed.
  response.upgrade<SocketData>({ socket }, head.socketKey, protocol, '', offer.context);
  return socket;
}

/**
 * Has a server take requests for a WebSocket on some paths: `onOffer` hears of each as a request handler does. Requests
 * without the headers of an upgrade go their usual way, or come without a context.
 */
export function takeSockets(
  app: TemplatedApp,
  paths: readonly string[],
  limits: SocketLimits,
  onOffer: (response: HttpResponse, request: HttpRequest, context: us_socket_context_t | null) => void,
): void {
  const behavior: WebSocketBehavior<SocketData> = {
    maxPayloadLength: limits.messageBytes,
    idleTimeout: limits.idleSeconds,
    // The owner stops its source at the first sign of a slow client; nothing is to be dropped.
    maxBackpressure: 0,
    upgrade: (response, request, context) =>
      onOffer(response, request, asksForSocket(request) ? context : null),
    open: (socket) => socket.getUserData().socket.opened(socket),
    message: (socket, message, isBinary) => socket.getUserData().socket.heard(message, isBinary),
    drain: (socket) => socket.getUserData().socket.drained(),
    close: (socket, code, reason) =>
      socket.getUserData().socket.ended(code, Buffer.from(reason).toString('utf8')),
  };
  for (const path of paths) app.ws<SocketData>(path, behavior);
}

/** Whether the rest of the upgrade's headers is there (RFC 6455 section 4.2.1): of them uWS looks at the key alone. */
function asksForSocket(request: HttpRequest): boolean {
  return (
    request.getHeader('upgrade').toLowerCase() === 'websocket' &&
    request.getHeader('connection').toLowerCase().includes('upgrade') &&
    request.getHeader('sec-websocket-version') === '13'
  );
}
