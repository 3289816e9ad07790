import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createSecureServer, type Server as SecureServer, type TlsOptions } from 'node:tls';
import type { Test } from 'tap';

/** A request as an upstream received it, byte for byte. */
export interface RawRequest {
  /** Request line and headers, without the empty line. */
  readonly head: string;
  readonly body: Buffer;
  readonly socket: Socket;
}

export interface RawUpstream {
  /** For `baseUrl`: ends in `/v1`. */
  readonly url: string;
  readonly port: number;
  readonly requests: readonly RawRequest[];
  /** Sockets that are open now. */
  readonly sockets: ReadonlySet<Socket>;
  /** Resolves with the request of that number (from 0) once it has come whole. */
  request(index: number): Promise<RawRequest>;
  /** What speaks TLS, or null. */
  readonly secure: SecureServer | null;
  /** Closes its connections and its port before the test ends. */
  close(): Promise<void>;
}

export interface RawUpstreamOptions {
  /** Any free one unless given. */
  readonly port?: number;
  /** Serves TLS. */
  readonly tls?: TlsOptions;
  /** Sees every connection of TCP first. @returns true when it keeps the connection, which then reads no request */
  readonly onConnection?: (socket: Socket) => boolean;
}

/**
 * An upstream that answers each request by `answer`, which writes raw bytes to the socket. It reads requests with
 * a content-length, one after the other. It ends with the test.
 */
export async function startRawUpstream(
  t: Test,
  answer: (request: RawRequest, index: number) => void,
  options: RawUpstreamOptions = {},
): Promise<RawUpstream> {
  const requests: RawRequest[] = [];
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  const serve = (socket: Socket): void => {
    socket.on('error', () => {});
    let received = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      for (;;) {
        const end = received.indexOf('\r\n\r\n');
        if (end === -1) return;
        const head = received.toString('latin1', 0, end);
        const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0);
        if (received.length < end + 4 + length) return;
        const request = { head, body: received.subarray(end + 4, end + 4 + length), socket };
        received = received.subarray(end + 4 + length);
        requests.push(request);
        answer(request, requests.length - 1);
        for (const look of waiting) look();
      }
    });
  };
  const secure = options.tls === undefined ? null : createSecureServer(options.tls, serve);
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    if (options.onConnection?.(socket) === true) return;
    if (secure === null) serve(socket);
    else secure.emit('connection', socket);
  });
  secure?.on('tlsClientError', () => {});
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  t.teardown(close);
  return {
    url: `http${secure === null ? '' : 's'}://127.0.0.1:${port}/v1`,
    port,
    secure,
    close,
    requests,
    sockets,
    request: (index) =>
      new Promise((resolve) => {
        const look = () => {
          const request = requests[index];
          if (request === undefined) return;
          waiting.delete(look);
          resolve(request);
        };
        waiting.add(look);
        look();
      }),
  };
}

/** A whole JSON answer. */
export function jsonAnswer(status: number, body: string, headers = ''): string {
  return (
    `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\n${headers}` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

/** The head of a chunked event stream. */
export const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';

/** One HTTP chunk. */
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

/** An event with one chat chunk. */
export function chatEvent(delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
}

export const usageEvent = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } })}\n\n`;
export const doneEvent = 'data: [DONE]\n\n';
