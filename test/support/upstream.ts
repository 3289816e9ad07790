import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createSecureServer, type Server as SecureServer, type TlsOptions } from 'node:tls';
import type { Test } from 'tap';
import { Arrivals } from './arrivals.js';
import { eventually } from './eventually.js';

const localhost = '127.0.0.1';

/** A request as an upstream receives it, byte for byte, once its head has arrived. */
export interface RawRequest {
  /** Request line and headers, without the empty line. */
  readonly head: string;
  readonly socket: Socket;
  /** The part of the body that has arrived, without its framing. */
  readonly body: Buffer;
  /** Number of its bytes. */
  readonly received: number;
  /** The whole body has arrived. */
  readonly isWhole: boolean;
  /** Resolves when this many bytes of the body have arrived. */
  until(bytes: number): Promise<unknown>;
  /** Resolves with the body when all of it has arrived. */
  whole(): Promise<Buffer>;
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
}

/**
 * What an upstream does with a whole request: the bytes that it answers, or a function that returns them or does
 * something else.
 */
export type Answer = string | Buffer | ((request: RawRequest, index: number) => unknown);

export interface RawUpstream {
  /** What it does with the next request. */
  answer: Answer;
  /** For `baseUrl`: ends in `/v1`. */
  readonly url: string;
  readonly port: number;
  /** Requests whose head has arrived. */
  readonly arrivals: readonly RawRequest[];
  /** Requests that have arrived completely. */
  readonly requests: readonly RawRequest[];
  /** Open sockets. */
  readonly sockets: ReadonlySet<Socket>;
  /** Resolves with the request of this number (from 0) once its head has arrived. */
  arrival(index: number): Promise<RawRequest>;
  /** Resolves with the request of this number (from 0) once it has arrived completely. */
  request(index: number): Promise<RawRequest>;
  /** The server behind TLS, or null. */
  readonly secure: SecureServer | null;
  /** Closes its connections and its port before the test ends. */
  close(): Promise<void>;
}

interface RawUpstreamOptions {
  /** Called when the head of a request has arrived: the socket may be paused, answered or destroyed. */
  readonly onHead?: (request: RawRequest, index: number) => void;
  /** Default: 127.0.0.1. `ownAddress` if the upstream is closed while it is still called. */
  readonly host?: string;
  /** Default: any free one. */
  readonly port?: number;
  /** Serves TLS. */
  readonly tls?: TlsOptions;
  /** Called first with every TCP connection. @returns true to keep the connection, which then reads no request */
  readonly onConnection?: (socket: Socket) => boolean;
}

/**
 * An upstream that does with each whole request what the test says. It reads successive requests, of a known length
 * or chunked. It ends with the test.
 */
export async function startRawUpstream(
  t: Pick<Test, 'teardown'>,
  first: Answer,
  options: RawUpstreamOptions = {},
): Promise<RawUpstream> {
  const arrivals = new Arrivals<RawRequest>();
  const requests = new Arrivals<RawRequest>();
  const serve = (socket: Socket): void => {
    socket.on('error', () => {});
    let rest: Buffer = Buffer.alloc(0);
    let current: Incoming | null = null;
    const begin = (): Incoming | null => {
      const end = rest.indexOf('\r\n\r\n');
      if (end === -1) return null;
      const request = new Incoming(rest.toString('latin1', 0, end), socket);
      rest = rest.subarray(end + 4);
      arrivals.add(request);
      options.onHead?.(request, arrivals.all.length - 1);
      return request;
    };
    socket.on('data', (data) => {
      rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
      for (;;) {
        current ??= begin();
        if (current === null) return;
        rest = current.take(rest);
        if (!current.isWhole) return;
        const request = current;
        current = null;
        requests.add(request);
        const { answer } = upstream;
        const bytes = typeof answer === 'function' ? answer(request, requests.all.length - 1) : answer;
        if (typeof bytes === 'string' || Buffer.isBuffer(bytes)) socket.write(bytes);
      }
    });
  };
  const secure = options.tls === undefined ? null : createSecureServer(options.tls, serve);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    if (options.onConnection?.(socket) === true) return;
    if (secure === null) serve(socket);
    else secure.emit('connection', socket);
  });
  secure?.on('tlsClientError', () => {});
  const { host = localhost } = options;
  const port = await listen(server, options.port, host);
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  t.teardown(close);
  const upstream: RawUpstream = {
    answer: first,
    url: `http${secure === null ? '' : 's'}://${host}:${port}/v1`,
    port,
    secure,
    close,
    arrivals: arrivals.all,
    requests: requests.all,
    sockets,
    arrival: (index) => arrivals.at(index),
    request: (index) => requests.at(index),
  };
  return upstream;
}

/** Resolves once all connections to an upstream are closed. */
export function untilCut(upstream: RawUpstream | undefined): Promise<boolean> {
  return eventually(() => (upstream?.sockets.size ?? 0) === 0);
}

/** Returns the whole requests, without those by which the gateway polls tasks on its own. */
export function postsTo({ requests }: Pick<RawUpstream, 'requests'>): readonly RawRequest[] {
  return requests.filter(({ head }) => head.startsWith('POST'));
}

class Incoming implements RawRequest {
  readonly head: string;
  readonly socket: Socket;
  readonly closed: Promise<void>;
  received = 0;
  isWhole = false;
  /** Null for a chunked body. */
  readonly #length: number | null;
  #pieces: Buffer[] = [];

  constructor(head: string, socket: Socket) {
    this.head = head;
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.on('close', () => resolve()));
    const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0);
    this.#length = /^transfer-encoding: *chunked$/im.test(head) ? null : length;
  }

  get body(): Buffer {
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0] ?? Buffer.alloc(0);
  }

  until(bytes: number): Promise<unknown> {
    return eventually(() => this.received >= bytes, { what: `${bytes} bytes of a body` });
  }

  async whole(): Promise<Buffer> {
    await eventually(() => this.isWhole, { what: 'a whole body' });
    return this.body;
  }

  /** @returns the bytes after the body, or those that cannot be read yet */
  take(data: Buffer): Buffer {
    if (this.#length === null) return this.#unchunk(data);
    const left = this.#length - this.received;
    this.#add(data.subarray(0, left));
    this.isWhole = this.received === this.#length;
    return data.subarray(left);
  }

  #add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.received += bytes.length;
  }

  #unchunk(data: Buffer): Buffer {
    let rest = data;
    while (!this.isWhole) {
      const lineEnd = rest.indexOf('\r\n');
      if (lineEnd === -1) return rest;
      const size = Number.parseInt(rest.toString('latin1', 0, lineEnd), 16);
      if (rest.length < lineEnd + 2 + size + 2) return rest;
      this.#add(rest.subarray(lineEnd + 2, lineEnd + 2 + size));
      this.isWhole = size === 0;
      rest = rest.subarray(lineEnd + 2 + size + 2);
    }
    return rest;
  }
}

/** An HTTP server of Node's, for tests that are not about bytes. */
interface HttpUpstream {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  readonly port: number;
}

/** Starts an HTTP server of Node's, which ends with the test. */
export async function startHttpUpstream(
  t: Pick<Test, 'teardown'>,
  onRequest: RequestListener,
): Promise<HttpUpstream> {
  const server = createHttpServer(onRequest);
  const port = await listen(server);
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return { origin: `http://127.0.0.1:${port}`, port };
}

async function listen(server: Server, port = 0, host = localhost): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Returns a whole JSON answer. */
export function jsonAnswer(status: number, body: string, headers = ''): string {
  return (
    `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\n${headers}` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

/** The head of a chunked event stream. */
export const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';

/** Returns one HTTP chunk. */
export function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

export const lastChunk = '0\r\n\r\n';

/** A chat completion with a usage of 3 and 4 tokens. */
export const completion = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
});

/** Returns an event with one chat chunk. */
export function chatEvent(delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
}

export const usageEvent = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } })}\n\n`;
export const doneEvent = 'data: [DONE]\n\n';
