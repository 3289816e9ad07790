/** What the tests of streamed request bodies share. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Connection } from '../../src/upstream/connection.js';
import type { ConnectionExchange } from '../../src/upstream/exchange.js';
import type { Origin } from '../../src/upstream/origin.js';
import type {
  Deadlines,
  RequestBodySink,
  RequestBodySource,
  UpstreamClient,
} from '../../src/upstream/types.js';
import { Call, get, listen, type RawServer, unhurried } from './raw.js';

/** A source that notes what it hears, and writes when it is told to. */
export class Source implements RequestBodySource {
  readonly length: number;
  readonly events: string[] = [];
  sink: RequestBodySink | null = null;
  /** Called for `open` and `drain`, after it has been noted. */
  onEvent: (event: string, sink: RequestBodySink) => void = () => {};

  constructor(length = -1) {
    this.length = length;
  }

  onOpen(sink: RequestBodySink): void {
    this.sink = sink;
    this.events.push('open');
    this.onEvent('open', sink);
  }

  onDrain(): void {
    this.events.push('drain');
    this.onEvent('drain', this.sink as RequestBodySink);
  }
}

/** A source that writes all it has as fast as it is taken. */
export function giving(chunks: Iterable<Buffer>, length = -1): Source {
  const source = new Source(length);
  const iterator = chunks[Symbol.iterator]();
  source.onEvent = (_event, sink) => {
    for (;;) {
      const { value, done } = iterator.next();
      if (done) {
        sink.end();
        return;
      }
      if (!sink.write(value)) return;
    }
  };
  return source;
}

interface UploadOptions {
  readonly body?: readonly Buffer[];
  readonly deadlines?: Partial<Deadlines>;
}

/** Sends a POST with a source. */
export function upload(
  client: UpstreamClient,
  origin: Origin,
  source: RequestBodySource,
  options: UploadOptions = {},
): Call {
  const { body = [], deadlines } = options;
  return new Call(client, origin, { ...get('/', 'POST'), body, source }, { ...unhurried, ...deadlines });
}

/** The client's own end of a request's connection. */
export function socketOf(call: Call): Socket {
  const { connection } = call.exchange as ConnectionExchange;
  if (connection === null) throw new Error('no connection');
  return (connection as Connection).socket;
}

/** A server of Node, which reads the framing by itself. */
export function httpServer(
  t: Parameters<typeof listen>[0],
  onRequest: RequestListener,
  server: Server = createServer(),
): Promise<RawServer> {
  server.on('request', onRequest);
  return listen(t, server, () => {});
}

/** Reads a body slowly enough that its sender feels it, and hashes it. */
export async function hashSlowly(request: IncomingMessage): Promise<{ hash: string; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  let pieces = 0;
  for await (const piece of request) {
    hash.update(piece as Buffer);
    bytes += (piece as Buffer).length;
    if (++pieces % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return { hash: hash.digest('hex'), bytes };
}
