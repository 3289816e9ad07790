/** What the tests of the upstream client share: raw servers, and a request whose outcome can be awaited. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { surfaceFault } from '../../src/errors.js';
import { createUpstreamClient } from '../../src/upstream/client.js';
import type { Origin } from '../../src/upstream/origin.js';
import type {
  Deadlines,
  ResponseHead,
  UpstreamClient,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamRequest,
} from '../../src/upstream/types.js';
import { type HeadLines, headerLine, joinLines, requestLine } from '../../src/wire/head.js';

const never = () => false;

export const unhurried: Deadlines = {
  connectMs: 20_000,
  firstByteMs: 20_000,
  idleMs: 20_000,
  totalMs: 60_000,
};

interface Teardown {
  teardown(callback: () => unknown): void;
}

/** A client that is closed at the end of the test. */
export function makeClient(t: Teardown): UpstreamClient {
  const client = createUpstreamClient();
  t.teardown(() => client.close());
  return client;
}

export interface RawServer {
  readonly port: number;
  readonly origin: Origin;
  /** Every connection so far, in order. */
  readonly sockets: Socket[];
}

export function plainOrigin(port: number, more: Partial<Origin> = {}): Origin {
  return {
    identity: `http://127.0.0.1:${port}`,
    secure: false,
    host: '127.0.0.1',
    port,
    authority: `127.0.0.1:${port}`,
    serverName: null,
    ca: null,
    clientCertificate: null,
    proxy: null,
    verify: true,
    isKept: true,
    maxConnections: 8,
    maxWaiting: 8,
    ...more,
  };
}

/** Listens on a free port; every socket goes to `onConnection`; all are destroyed at the end of the test. */
export async function listen(
  t: Teardown,
  server: Server,
  onConnection: (socket: Socket, index: number) => void,
) {
  const sockets: Socket[] = [];
  const event = 'setSecureContext' in server ? 'secureConnection' : 'connection';
  server.on(event, (socket: Socket) => {
    socket.on('error', () => {});
    sockets.push(socket);
    onConnection(socket, sockets.length - 1);
  });
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = (server.address() as AddressInfo).port;
  return { port, origin: plainOrigin(port), sockets } satisfies RawServer;
}

export function rawServer(
  t: Teardown,
  onConnection: (socket: Socket, index: number) => void,
): Promise<RawServer> {
  return listen(t, createServer({ noDelay: true }), onConnection);
}

/** Calls `onRequest` for every whole request without a body on a socket. */
export function onRequests(socket: Socket, onRequest: (text: string) => void): void {
  let text = '';
  socket.on('data', (data: Buffer) => {
    text += data.toString('latin1');
    for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
      const request = text.slice(0, end + 4);
      text = text.slice(end + 4);
      onRequest(request);
    }
  });
}

/** Answers every request on a socket with the same bytes. */
export function answering(answer: string): (socket: Socket) => void {
  return (socket) => onRequests(socket, () => socket.write(answer, 'latin1'));
}

/** The head of a request. */
export function headOf(method: string, path: string, host = 'x'): HeadLines {
  return joinLines(requestLine(method, path), headerLine('host', host));
}

export function get(path = '/', method = 'GET'): UpstreamRequest {
  return { method, head: headOf(method, path), body: [], source: null, hasEffects: never };
}

/** A request under way, with everything that its handler heard. */
export class Call implements UpstreamHandler {
  readonly events: string[] = [];
  head: ResponseHead | null = null;
  body = '';
  bytes = 0;
  failure: UpstreamFailure | null = null;
  /** Settles with `onEnd` or `onFailure`. */
  readonly over: Promise<this>;
  exchange!: UpstreamExchange;
  /** What `onData` answers. */
  wanting = true;
  /** Called at every event, after it has been noted. */
  onEvent: (event: string) => void = () => {};
  #settle!: (call: this) => void;

  constructor(client: UpstreamClient, origin: Origin, request = get(), deadlines = unhurried) {
    this.over = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.exchange = client.send(origin, request, deadlines, this);
  }

  onHead(head: ResponseHead): void {
    this.head = head;
    this.#note('head');
  }

  onData(chunk: Buffer): boolean {
    this.bytes += chunk.length;
    if (this.bytes <= 1 << 20) this.body += chunk.toString('latin1');
    this.#note('data');
    return this.wanting;
  }

  onEnd(): void {
    this.#note('end');
    this.#settle(this);
  }

  onFailure(failure: UpstreamFailure): void {
    this.failure = failure;
    this.#note('failure');
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
