import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_socket_context_t,
  WebSocket,
  WebSocketBehavior,
} from 'uWebSockets.js';
import { performance } from 'node:perf_hooks';
import { type FaultPlace, type Guarded, guardEach } from '../errors.js';
import { closeCode } from '../wire/close-code.js';
import type { Exchange, ExchangeHost } from './exchange.js';

/** What the owner of a client's WebSocket hears of it. */
export interface ClientSocketListener extends Guarded {
  /** A whole message. The bytes are valid only until the call returns. */
  onMessage(data: Buffer, isBinary: boolean): void;
  /** The client does not take at once what is sent: nothing more should be, until `onDrained`. */
  onBlocked(): void;
  /** The client has taken what waited. */
  onDrained(): void;
  /** The socket has ended, by either side; nothing is called after it. 1006: without a close frame. */
  onClosed(code: number, reason: string): void;
}

/** Bytes that belong together, counted as one sum. */
export interface HeldPart {
  /** Says how many they are now. @returns false when there is no room for more, and they are what they were */
  hold(bytes: number): boolean;
}

/** The memory of a socket: what its client has not taken, and what uWS has set aside for the client's messages. */
export interface SocketRooms {
  readonly unread: HeldPart;
  readonly received: HeldPart;
  /**
   * A message has come: others may be cut for what they hold.
   * @returns false when so much comes from where it comes from that it may not go on
   */
  arrived(bytes: number, now: number): boolean;
  /** Its owner has been busy with the message for so long. */
  took(ms: number): void;
}

/** Limits that hold for every socket of a server, as long as it runs. */
export interface SocketLimits {
  /** Largest message, in bytes: uWS cuts the connection at the head of a frame with which one becomes larger. */
  readonly messageBytes: number;
  /** Silence after which a client that answers no ping is given up, in seconds: 8 to 960. */
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
/** What may wait for a client that does not read, beside the message that it is taking. */
const mostUnreadBytes = 512 * 1024;
/** uWS keeps room for the largest message that did not come in one read. Of smaller ones it is not worth a count. */
const receivedBytes = 64 * 1024;
/** A client is told why it is refused where its largest message was no longer: uWS keeps the room until it has left. */
const toldBytes = 1024 * 1024;
/** Pings of a client in a second: each costs a call out of uWS. */
const mostPings = 100;

/** The reason with which uWS tells of a message that is too large. */
export const tooBigReason = 'Received too big message';

/**
 * A client's WebSocket (RFC 6455). uWS joins fragments, answers pings, sends its own, and checks that text is UTF-8. It
 * cannot be told to stop reading: what comes has to be taken.
 */
export class ClientSocket implements Guarded {
  readonly #listener: ClientSocketListener;
  readonly #host: ExchangeHost;
  readonly #rooms: SocketRooms;
  #socket: WebSocket<SocketData> | null = null;
  #blocked = false;
  #waiting: Message[] = [];
  /** The largest message that was sent since the client last had taken everything. */
  #underWay = 0;
  #largestReceived = receivedBytes;
  #pings = 0;
  /** When the last frame of the client was whole, and since when it owes a pong, or 0; of `performance.now()`. */
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

  /** The client has to take what waits. */
  get isBlocked(): boolean {
    return this.#blocked;
  }

  /** Bytes that uWS holds for it, as far as they are counted. */
  get countedBytes(): number {
    const received = this.#largestReceived > receivedBytes ? this.#largestReceived : 0;
    return received + (this.#blocked ? (this.#socket?.getBufferedAmount() ?? 0) : 0);
  }

  /** For how long the client has owed a pong: it may be within a frame that does not end. */
  silence(now: number): number {
    return this.#askedAt === 0 ? 0 : now - this.#askedAt;
  }

  /** Asks for a sign of life, unless one is owed already, or came within `ms`. */
  ask(now: number, ms: number): void {
    if (this.#socket === null || this.#askedAt !== 0 || now - this.#heardAt < ms) return;
    this.#askedAt = now;
    this.#socket.ping();
    this.#settle();
  }

  /** To be called about once a second. @param idleMs within which a client has to end a frame, if only a pong */
  check(now: number, idleMs: number): void {
    this.#pings = 0;
    if (this.silence(now) <= idleMs / 2) this.ask(now, idleMs / 2);
    else if (this.#blocked) this.refuse(notRead);
    else this.cut();
  }

  /** Ends it because of what its client does: with 1013 where that does not read, else with 1008. */
  refuse(reason: string): void {
    this.flush();
    this.#socket?.end(this.#blocked ? closeCode.tryLater : closeCode.policy, reason);
  }

  /** Cuts the connection, and with it what uWS holds for it, which a close frame would leave there for a while. */
  cut(): void {
    this.#socket?.close();
  }

  /**
   * Sends a message. The bytes are taken over, and must not change any more. They leave when the callback that is
   * running has ended, together with what else it sends.
   * @returns false when the client does not keep up
   */
  send(data: Buffer | string, isBinary: boolean): boolean {
    if (this.#waiting.length === 0) process.nextTick(flushGuarded, this);
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
    // The owner of a socket may end it in its callbacks, and nobody but uWS.
    const isTaken = this.#socket === null || socket.getBufferedAmount() === 0;
    if (!isTaken)
      for (const { data } of waiting) this.#underWay = Math.max(this.#underWay, Buffer.byteLength(data));
    waiting.length = 0;
    if (!isTaken) this.#settle();
  }

  /** Looks at what waits for the client, after something was sent. */
  #settle(): void {
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

  /** Sends a close frame and ends the connection; `onClosed` follows, perhaps at once. */
  close(code: number, reason: string): void {
    try {
      this.flush();
    } finally {
      this.#socket?.end(code, reason);
    }
  }

  /** Ends the session: its owner first, with what it has to say, then the socket with 1011. */
  onFault(where: FaultPlace, fault: unknown): void {
    try {
      this.#listener.onFault(where, fault);
    } finally {
      this.#waiting = [];
      this.#socket?.end(closeCode.internal, 'internal error');
    }
  }

  /** Called when the connection has become one of WebSocket. */
  opened(socket: WebSocket<SocketData>): void {
    this.#socket = socket;
    this.#host.open++;
  }

  heard(message: ArrayBuffer, isBinary: boolean): void {
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

  /** Ends it for a message that cannot be taken: with 1013, or without a word where that would keep too much. */
  #turnAway(bytes: number, reason: string): void {
    if (this.#blocked || Math.max(bytes, this.#largestReceived) > toldBytes) this.cut();
    else this.close(closeCode.tryLater, reason);
  }

  /** uWS has answered a ping of the client. */
  pinged(): void {
    this.#answered();
    if (++this.#pings > mostPings) this.refuse('Too many pings.');
    else this.#settle();
  }

  ponged(): void {
    this.#answered();
  }

  #answered(): number {
    this.#heardAt = performance.now();
    this.#askedAt = 0;
    return this.#heardAt;
  }

  drained(): void {
    if (!this.#blocked || this.#socket === null) return;
    const unread = this.#socket.getBufferedAmount();
    this.#rooms.unread.hold(unread);
    // It reads: what it is asked waits behind the rest.
    this.#answered();
    if (unread > 0) return;
    this.#blocked = false;
    this.#underWay = 0;
    this.#listener.onDrained();
  }

  ended(code: number, reason: string): void {
    const wasOpen = this.#socket !== null;
    // Without a close frame uWS holds nothing any more.
    if (code === closeCode.broken) this.#rooms.unread.hold(0);
    this.#socket = null;
    this.#waiting = [];
    const host = this.#host;
    if (wasOpen) host.open--;
    if (host.open === 0) host.onIdle?.();
    this.#listener.onClosed(code, reason);
  }
}

const flushGuarded = guardEach(
  'socket',
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
 * Makes a WebSocket of an exchange whose request asked for one, in place of an answer: the exchange has then ended.
 * @param protocol the subprotocol that is agreed on; empty for none
 * @returns null when the client has left
 */
export function acceptSocket(
  exchange: Exchange,
  protocol: string,
  listener: ClientSocketListener,
  rooms: SocketRooms,
): ClientSocket | null {
  const { offer, head, id } = exchange;
  if (offer === null) throw new Error('the request asks for no WebSocket');
  if (!exchange.handOver()) return null;
  const { response } = offer;
  const socket = new ClientSocket(listener, offer.host, rooms);
  try {
    response.cork(() => response.writeStatus('101 Switching Protocols').writeHeader('x-request-id', id));
    // Not inside `cork`, the one exception: when the socket stays where it is in memory, uWS goes on after the callback
    // as if it were a response still, and what it then takes for its state may say that the connection is to be closed.
    response.upgrade<SocketData>({ socket }, head.socketKey, protocol, '', offer.context);
  } catch (fault) {
    // The exchange has ended: nobody else would.
    response.close();
    throw fault;
  }
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
    open: guardEach('socket', ownerOf, (socket) => ownerOf(socket).opened(socket)),
    message: guardEach('socket', ownerOf, (socket, message: ArrayBuffer, isBinary: boolean) =>
      ownerOf(socket).heard(message, isBinary),
    ),
    ping: guardEach('socket', ownerOf, (socket) => ownerOf(socket).pinged()),
    pong: guardEach('socket', ownerOf, (socket) => ownerOf(socket).ponged()),
    drain: guardEach('socket', ownerOf, (socket) => ownerOf(socket).drained()),
    close: guardEach('socket', ownerOf, (socket, code: number, reason: ArrayBuffer) =>
      ownerOf(socket).ended(code, Buffer.from(reason).toString('utf8')),
    ),
  };
  for (const path of paths) app.ws<SocketData>(path, behavior);
}

function ownerOf(socket: WebSocket<SocketData>): ClientSocket {
  return socket.getUserData().socket;
}

/** Whether the rest of the upgrade's headers is there (RFC 6455 section 4.2.1): of them uWS looks at the key alone. */
function asksForSocket(request: HttpRequest): boolean {
  return (
    request.getHeader('upgrade').toLowerCase() === 'websocket' &&
    request.getHeader('connection').toLowerCase().includes('upgrade') &&
    request.getHeader('sec-websocket-version') === '13'
  );
}
