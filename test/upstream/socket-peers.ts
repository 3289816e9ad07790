/** What the tests of upstream sockets share: servers, and a socket whose outcome can be awaited. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { surfaceFault } from '../../src/errors.js';
import { createDialer, type Dialer } from '../../src/upstream/dial.js';
import type { Origin } from '../../src/upstream/origin.js';
import { openSocket } from '../../src/upstream/socket.js';
import type {
  SocketFault,
  SocketListener,
  SocketRequest,
  UpstreamSocket,
} from '../../src/upstream/socket-types.js';
import type { ResponseHead, UpstreamFailure } from '../../src/upstream/types.js';
import { plainOrigin } from './raw.js';

interface Teardown {
  teardown(callback: () => unknown): void;
}

export const dialer = createDialer();

export function socketRequest(origin: Origin, more: Partial<SocketRequest> = {}): SocketRequest {
  return {
    origin,
    path: '/v1/realtime?model=x',
    headers: [],
    maxMessageBytes: 1 << 24,
    connectMs: 20_000,
    firstByteMs: 20_000,
    pingMs: 20_000,
    ...more,
  };
}

/** A socket with everything that its listener heard. */
export class Heard implements SocketListener {
  readonly events: string[] = [];
  readonly messages: { data: Buffer; isBinary: boolean }[] = [];
  refusal: { head: ResponseHead; body: Buffer } | null = null;
  failure: UpstreamFailure | null = null;
  closed: { code: number; reason: string } | null = null;
  fault: SocketFault | null = null;
  readonly opened: Promise<this>;
  /** Settles with `onDeclined`, `onFailed` or `onClosed`. */
  readonly over: Promise<this>;
  readonly socket: UpstreamSocket;
  onEvent: (event: string) => void = () => {};
  /** What the socket said that it keeps, each time; and the most that it may. */
  readonly held: number[] = [];
  mostHeld = Number.POSITIVE_INFINITY;
  /** Messages whose bytes are the socket's. */
  readonly #fresh: number[] = [];
  #open!: (heard: this) => void;
  #settle!: (heard: this) => void;

  constructor(origin: Origin, more: Partial<SocketRequest> = {}, by: Dialer = dialer) {
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
    this.over = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.socket = openSocket(socketRequest(origin, more), by, this);
  }

  onOpen(): void {
    this.#note('open');
    this.#open(this);
  }

  onDeclined(head: ResponseHead, body: Buffer): void {
    this.refusal = { head, body };
    this.#note('declined');
    this.#settle(this);
  }

  onFailed(failure: UpstreamFailure): void {
    this.failure = failure;
    this.#note('failed');
    this.#settle(this);
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    this.messages.push({ data, isBinary });
    this.#fresh.push(this.messages.length - 1);
    this.#note('message');
  }

  onReadEnd(): void {
    // Only now, since the bytes are valid until here.
    for (const i of this.#fresh) {
      const message = this.messages[i];
      if (message !== undefined) message.data = Buffer.from(message.data);
    }
    this.#fresh.length = 0;
  }

  onDrained(): void {
    this.#note('drained');
  }

  hold(bytes: number): boolean {
    if (bytes > this.mostHeld) return false;
    this.held.push(bytes);
    return true;
  }

  onClosed(code: number, reason: Buffer, fault: SocketFault | null): void {
    this.closed = { code, reason: reason.toString() };
    this.fault = fault;
    this.#note('closed');
    this.#settle(this);
  }

  onFault(_where: string, fault: unknown): void {
    surfaceFault(fault);
  }

  #note(event: string): void {
    this.events.push(event);
    this.onEvent(event);
  }
}

interface SocketServer {
  readonly origin: Origin;
  /** What the server holds of each socket so far, in order. */
  readonly peers: { socket: WebSocket; raw: Socket; request: IncomingMessage }[];
}

/** A server of `ws`; all is destroyed at the end of the test. */
export async function socketServer(
  t: Teardown,
  onSocket: (socket: WebSocket, raw: Socket) => void = () => {},
  options: ServerOptions = {},
): Promise<SocketServer> {
  const http = createServer();
  const server = new WebSocketServer({ server: http, perMessageDeflate: false, ...options });
  const peers: SocketServer['peers'] = [];
  server.on('connection', (socket, request) => {
    socket.on('error', () => {});
    peers.push({ socket, raw: request.socket, request });
    onSocket(socket, request.socket);
  });
  t.teardown(() => {
    for (const { raw } of peers) raw.destroy();
    server.close();
    http.close();
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return { origin: plainOrigin((http.address() as AddressInfo).port), peers };
}

/** The answer that accepts an upgrade. */
export function acceptance(request: string): string {
  const key = /sec-websocket-key: (.*)\r\n/i.exec(request)?.[1] ?? '';
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  return `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`;
}
