import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TlsOptions } from 'node:tls';
import type { Test } from 'tap';
import { WebSocket, WebSocketServer } from 'ws';
import { Arrivals } from './arrivals.js';
import { eventually } from './eventually.js';
import { testKey } from './gateway.js';

/** One session at an upstream. */
export interface Arrival {
  readonly request: IncomingMessage;
  readonly socket: WebSocket;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

interface RealtimeUpstream {
  /** For `baseUrl`: ends in `/v1`. */
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Resolves with the session of this number (from 0) once it is open. */
  arrival(index: number): Promise<Arrival>;
}

/** What an upstream does with a request for a WebSocket instead of accepting it. */
type OnUpgrade = (request: IncomingMessage, socket: Duplex) => boolean;

/**
 * Starts an upstream for WebSockets that does with each session what the test says. It ends with the test.
 * @param tls serves TLS
 */
export async function startRealtimeUpstream(
  t: Test,
  onSession: (arrival: Arrival) => void = () => {},
  onUpgrade: OnUpgrade = () => false,
  tls: TlsOptions | null = null,
): Promise<RealtimeUpstream> {
  const arrivals = new Arrivals<Arrival>();
  const onRequest: RequestListener = (_request, response) => response.writeHead(404).end();
  const server = tls === null ? createServer(onRequest) : createSecureServer(tls, onRequest);
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 0 });
  server.on('upgrade', (request, socket, head) => {
    if (onUpgrade(request, socket)) return;
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      const arrival = { request, socket: accepted, closed: closeOf(accepted) };
      onSession(arrival);
      arrivals.add(arrival);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const { socket } of arrivals.all) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http${tls === null ? '' : 's'}://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    arrivals: arrivals.all,
    arrival: (index) => arrivals.at(index),
  };
}

/** Resolves with how a socket was closed. */
export function closeOf(socket: WebSocket): Promise<{ readonly code: number; readonly reason: string }> {
  socket.on('error', () => {});
  return new Promise((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  );
}

export interface SessionOptions {
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly protocols?: readonly string[];
}

/** A client's socket that keeps what it receives. */
export interface SessionClient {
  readonly socket: WebSocket;
  /** Messages, as text or bytes, in order. */
  readonly received: (string | Buffer)[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** Resolves when this many messages have arrived. */
  until(messages: number): Promise<unknown>;
}

const bearer = { authorization: `Bearer ${testKey}` };

/**
 * Opens a session.
 * @throws `Refused` if it is answered over HTTP
 */
export async function openClient(
  t: Test,
  port: number,
  { query = 'model=m', headers = bearer, protocols = [] }: SessionOptions = {},
): Promise<SessionClient> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/realtime?${query}`, [...protocols], {
    headers,
    perMessageDeflate: false,
    maxPayload: 0,
  });
  t.teardown(() => socket.terminate());
  const received: (string | Buffer)[] = [];
  socket.on('message', (data: Buffer, isBinary) => {
    received.push(isBinary ? data : data.toString());
  });
  const closed = closeOf(socket);
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve());
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      let body = '';
      response.on('data', (data) => {
        body += data;
      });
      response.on('end', () => reject(new Refused(response.statusCode ?? 0, response.headers, body)));
    });
    socket.once('error', reject);
  });
  return {
    socket,
    received,
    closed,
    until: (messages) => eventually(() => received.length >= messages, { what: `${messages} messages` }),
  };
}

/** The HTTP answer to a request for a WebSocket. */
export class Refused extends Error {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;

  constructor(status: number, headers: IncomingMessage['headers'], body: string) {
    super(`${status} ${body}`);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

/** @returns the HTTP answer to a request for a session */
export async function refusalOf(t: Test, port: number, options: SessionOptions = {}): Promise<Refused> {
  try {
    await openClient(t, port, options);
  } catch (error) {
    if (error instanceof Refused) return error;
    throw error;
  }
  throw new Error('the session was opened');
}

/** Returns the request for a session, for a client that is written by hand. */
export function upgradeRequest(query = 'model=m'): string {
  return (
    `GET /v1/realtime?${query} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\nconnection: upgrade\r\n` +
    'upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  );
}
