import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_socket_context_t,
  WebSocket,
  WebSocketBehavior,
} from 'uWebSockets.js';
import { performance } from 'node:perf_hooks';
import { type FaultPlace, type Guarded, handFault } from '../errors.js';
import { closeCode } from '../wire/close-code.js';
import type { Exchange, ExchangeHost } from './exchange.js';

/** Receives the events of a client's WebSocket. Its owner implements it. */
export interface ClientSocketListener extends Guarded {
  /** Called with a whole message. The bytes are valid only until the call returns. */
  onMessage(data: Buffer, isBinary: boolean): void;
  /** Called when the client is too slow: send nothing more until `onDrained`. */
  onBlocked(): void;
  /** Called when the client has read what waited. */
  onDrained(): void;
  /** Called when either side has ended the socket, as the last call. 1006: without a close frame. */
  onClosed(code: number, reason: string): void;
}

/** Counter of bytes that are held for one purpose. */
export interface HeldPart {
  /** Sets the number of bytes. @returns false if there is no memory for more; the number is then unchanged */
  hold(bytes: number): boolean;
}

/** The memory of a socket: bytes that its client has not read, and uWS's buffer for the client's messages. */
export interface SocketRooms {
  readonly unread: HeldPart;
  readonly received: HeldPart;
  /**
   * Called when a message has arrived. May close other sockets because of the memory that they hold.
   * @returns false if the socket's key sends so much that the socket has to end
   */
  arrived(bytes: number, now: number): boolean;
  /** Called with the milliseconds that the owner has spent on the message. */
  took(ms: number): void;
}

/** Limits of every socket of a server. They cannot change while it runs. */
export interface SocketLimits {
  /** Largest message in bytes. uWS closes the connection at the head of a frame with which a message exceeds it. */
  readonly messageBytes: number;
  /** Seconds of silence after which a client that answers no ping is disconnected: 8 to 960. */
  readonly idleSeconds: number;
}

interface Message {
  readonly data: Buffer | string;
  readonly isBinary: boolean;
}

interface SocketData {
  readonly socket: ClientSocket;
}

const noBytes = Buffer.alloc(0);
/** Most bytes that may wait for a client, beside the largest message that it is reading. */
const mostUnreadBytes = 512 * 1024;
/** uWS keeps a buffer for the largest message that did not arrive in one read. Up to this size it is not counted. */
const receivedBytes = 64 * 1024;
/**
 * A refused client gets a reason only if its largest message was at most this long: uWS keeps the buffer until it
 * leaves.
 */
const toldBytes = 1024 * 1024;
/** Bytes of the key of a handshake. uWS reads as many of it, however long it is. */
const socketKeyLength = 24;
/** Most pings of a client per second, since each costs a callback from uWS. */
const mostPings = 100;

/** The reason that uWS reports for a message that is too large. */
export const tooBigReason = 'Received too big message';

/**
 * A client's WebSocket (RFC 6455). uWS joins fragments, answers pings, sends its own, and checks that text is UTF-8. It
 * cannot pause reading, so everything that arrives has to be accepted.
 */
export class ClientSocket implements Guarded {
  readonly #listener: ClientSocketListener;
  readonly #host: ExchangeHost;
  readonly #rooms: SocketRooms;
  #socket: WebSocket<SocketData> | null = null;
  #blocked = false;
  #waiting: Message[] = [];
  /** Size of the largest message sent since the client had last read everything. */
  #underWay = 0;
  #largestReceived = receivedBytes;
  #pings = 0;
  /** Times of `performance.now()`: of the client's last whole frame, and since when it owes a pong, or 0. */
  #heardAt = performance.now();
  #askedAt = 0;

  constructor(listener: ClientSocketListener, host: ExchangeHost, rooms: SocketRooms) {
    this.#listener = listener;
    this.#host = host;
    this.#rooms = rooms;
  }

  get isOpen(): boolean {
    return this.#socket !== null;
  }

  /** Whether the client has to read what waits before more may be sent. */
  get isBlocked(): boolean {
    return this.#blocked;
  }

  /** The counted part of the bytes that uWS holds for this socket. */
  get countedBytes(): number {
    const received = this.#largestReceived > receivedBytes ? this.#largestReceived : 0;
    return received + (this.#blocked ? (this.#socket?.getBufferedAmount() ?? 0) : 0);
  }

  /** Returns for how long the client has owed a pong. It may be within a frame that does not end. */
  silence(now: number): number {
    return this.#askedAt === 0 ? 0 : now - this.#askedAt;
  }

  /** Sends a ping, unless a pong is owed already, or a frame has arrived within `ms`. */
  ask(now: number, ms: number): void {
    if (this.#socket === null || this.#askedAt !== 0 || now - this.#heardAt < ms) return;
    this.#askedAt = now;
    this.#socket.ping();
    this.#checkUnread();
  }

  /**
   * To be called about once a second.
   * @param idleMs time within which a client has to complete a frame, if only a pong
   */
  check(now: number, idleMs: number): void {
    this.#pings = 0;
    if (this.silence(now) <= idleMs / 2) this.ask(now, idleMs / 2);
    else if (this.#blocked) this.refuse(notRead);
    else this.cut();
  }

  /** Ends the socket because of its client's behaviour: with 1013 if the client does not read, else with 1008. */
  refuse(reason: string): void {
    this.flush();
    this.#socket?.end(this.#blocked ? closeCode.tryLater : closeCode.policy, reason);
  }

  /** Closes the connection without a close frame, which frees uWS's buffers immediately instead of after a while. */
  cut(): void {
    this.#socket?.close();
  }

  /**
   * Sends a text message when the current callback has ended, together with its other messages. Takes ownership of the
   * bytes.
   * @returns false if the client is too slow
   */
  send(text: Buffer | string): boolean {
    if (this.#waiting.length === 0) process.nextTick(flushGuarded, this);
    this.gather(text, false);
    return !this.#blocked;
  }

  /** Sends a message with the next `flush`. Its bytes must not change until then. */
  gather(data: Buffer | string, isBinary: boolean): void {
    if (this.#socket !== null) this.#waiting.push({ data, isBinary });
  }

  /** Writes the messages that wait for the end of the callback. */
  flush(): void {
    const socket = this.#socket;
    const waiting = this.#waiting;
    if (socket === null || waiting.length === 0) return;
    if (waiting.length === 1) sendAll(socket, waiting);
    else socket.cork(() => sendAll(socket, waiting));
    // The socket may have ended during the write.
    const isTaken = this.#socket === null || socket.getBufferedAmount() === 0;
    if (!isTaken)
      for (const { data } of waiting) this.#underWay = Math.max(this.#underWay, Buffer.byteLength(data));
    waiting.length = 0;
    if (!isTaken) this.#checkUnread();
  }

  /** Checks what waits for the client, after a write. */
  #checkUnread(): void {
    const socket = this.#socket;
    if (socket === null) return;
    const unread = socket.getBufferedAmount();
    if (unread === 0) return;
    if (!this.#rooms.unread.hold(unread)) this.cut();
    else if (unread > this.#underWay + mostUnreadBytes) socket.end(closeCode.tryLater, notRead);
    else if (!this.#blocked) {
      this.#blocked = true;
      this.#listener.onBlocked();
    }
  }

  /** Sends a close frame and ends the connection. `onClosed` follows, possibly before this returns. */
  close(code: number, reason: string): void {
    try {
      this.flush();
    } finally {
      this.#socket?.end(code, reason);
    }
  }

  /** Reports the fault to the owner, which may still send something, and then ends the socket with 1011. */
  onFault(where: FaultPlace, fault: unknown): void {
    try {
      this.#listener.onFault(where, fault);
    } finally {
      this.#waiting = [];
      this.#socket?.end(closeCode.internal, 'internal error');
    }
  }

  /** Called when the connection has been upgraded. */
  onOpen(socket: WebSocket<SocketData>): void {
    this.#socket = socket;
    this.#host.open++;
  }

  onMessage(message: ArrayBuffer, isBinary: boolean): void {
    if (this.#socket === null) return;
    const heardAt = this.#answered();
    const mayGoOn = this.#rooms.arrived(message.byteLength, heardAt);
    if (this.#socket === null) return;
    if (!mayGoOn) {
      this.#turnAway(message.byteLength, tooFast);
      return;
    }
    if (message.byteLength > this.#largestReceived) {
      if (!this.#rooms.received.hold(message.byteLength)) {
        this.#turnAway(message.byteLength, noRoom);
        return;
      }
      this.#largestReceived = message.byteLength;
    }
    this.#listener.onMessage(message.byteLength === 0 ? noBytes : Buffer.from(message), isBinary);
    this.#rooms.took(performance.now() - heardAt);
  }

  /**
   * Ends the socket for a message that cannot be accepted: with 1013, or without a close frame if that holds too much.
   */
  #turnAway(bytes: number, reason: string): void {
    if (this.#blocked || Math.max(bytes, this.#largestReceived) > toldBytes) this.cut();
    else this.close(closeCode.tryLater, reason);
  }

  /** Called when uWS has answered a ping of the client. */
  onPing(): void {
    this.#answered();
    if (++this.#pings > mostPings) this.refuse('Too many pings.');
    else this.#checkUnread();
  }

  onPong(): void {
    this.#answered();
  }

  #answered(): number {
    this.#heardAt = performance.now();
    this.#askedAt = 0;
    return this.#heardAt;
  }

  onDrain(): void {
    if (!this.#blocked || this.#socket === null) return;
    const unread = this.#socket.getBufferedAmount();
    this.#rooms.unread.hold(unread);
    // The client reads, even if the ping to it still waits behind other bytes.
    this.#answered();
    if (unread > 0) return;
    this.#blocked = false;
    this.#underWay = 0;
    this.#listener.onDrained();
  }

  onClose(code: number, reason: string): void {
    const wasOpen = this.#socket !== null;
    // Without a close frame uWS no longer holds anything.
    if (code === closeCode.broken) this.#rooms.unread.hold(0);
    this.#socket = null;
    this.#waiting = [];
    const host = this.#host;
    if (wasOpen) host.open--;
    if (host.open === 0) host.onIdle?.();
    this.#listener.onClosed(code, reason);
  }
}

/**
 * Wraps a callback of sockets, whose owner has its exceptions.
 * @param ownerOf finds the owner by the first argument
 */
function guardEach<First, Rest extends unknown[]>(
  ownerOf: (first: First) => Guarded,
  callback: (first: First, ...rest: Rest) => void,
): (first: First, ...rest: Rest) => void {
  return (first, ...rest) => {
    try {
      callback(first, ...rest);
    } catch (fault) {
      handFault(ownerOf(first), 'socket', fault);
    }
  };
}

const flushGuarded = guardEach(
  (socket: ClientSocket) => socket,
  (socket) => socket.flush(),
);

const notRead = 'The client does not read what is sent to it.';
const noRoom = 'The WebSockets of this key hold as much memory as they may.';
const tooFast = 'The WebSockets of this key send more than the gateway can take at once.';

function sendAll(socket: WebSocket<SocketData>, messages: readonly Message[]): void {
  for (const { data, isBinary } of messages) socket.send(data, isBinary, false);
}

/**
 * Upgrades the connection of an exchange to a WebSocket, instead of sending a response. Ends the exchange.
 * @param protocol the selected subprotocol; empty for none
 * @returns null if the client has disconnected
 */
export function acceptSocket(
  exchange: Exchange,
  protocol: string,
  listener: ClientSocketListener,
  rooms: SocketRooms,
): ClientSocket | null {
  const { offer, head, id } = exchange;
  if (offer === null || head.socketKey.length !== socketKeyLength)
    throw new Error('the request asks for no WebSocket');
  if (!exchange.handOver()) return null;
  const { response } = offer;
  const socket = new ClientSocket(listener, offer.host, rooms);
  try {
    response.cork(() => response.writeStatus('101 Switching Protocols').writeHeader('x-request-id', id));
    // Unlike other writes, not inside `cork`: if the upgraded socket stays at its place in memory, uWS continues after
    // the callback as if it were still a response, and may misread its state as an order to close the connection. This
    // costs a warning on stderr for each socket. From v20.79, uWS compares the socket's context as well.
    response.upgrade<SocketData>({ socket }, head.socketKey, protocol, '', offer.context);
  } catch (fault) {
    // Nothing else would close it, since the exchange has ended.
    response.close();
    throw fault;
  }
  return socket;
}

/**
 * Makes a server accept WebSocket requests on some paths. Calls `onOffer` for each, as it would call a request handler.
 * A request without a complete set of upgrade headers is handled as a plain request, or passed without a context.
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
    // No limit: the owner stops its source as soon as the client is slow, and uWS must not drop messages.
    maxBackpressure: 0,
    upgrade: (response, request, context) =>
      onOffer(response, request, asksForSocket(request) ? context : null),
    open: guardEach(ownerOf, (socket) => ownerOf(socket).onOpen(socket)),
    message: guardEach(ownerOf, (socket, message: ArrayBuffer, isBinary: boolean) =>
      ownerOf(socket).onMessage(message, isBinary),
    ),
    ping: guardEach(ownerOf, (socket) => ownerOf(socket).onPing()),
    pong: guardEach(ownerOf, (socket) => ownerOf(socket).onPong()),
    drain: guardEach(ownerOf, (socket) => ownerOf(socket).onDrain()),
    close: guardEach(ownerOf, (socket, code: number, reason: ArrayBuffer) =>
      ownerOf(socket).onClose(code, Buffer.from(reason).toString('utf8')),
    ),
  };
  for (const path of paths) app.ws<SocketData>(path, behavior);
}

function ownerOf(socket: WebSocket<SocketData>): ClientSocket {
  return socket.getUserData().socket;
}

/** Whether the upgrade's other headers are present (RFC 6455 section 4.2.1): uWS checks only the key. */
function asksForSocket(request: HttpRequest): boolean {
  return (
    request.getHeader('upgrade').toLowerCase() === 'websocket' &&
    request.getHeader('connection').toLowerCase().includes('upgrade') &&
    request.getHeader('sec-websocket-version') === '13'
  );
}
