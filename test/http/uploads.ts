import { createHash } from 'node:crypto';
import type { Test } from 'tap';
import type { GatewayError } from '../../src/errors.js';
import type { BodyStreamReceiver } from '../../src/http/body-stream.js';
import type { Exchange } from '../../src/http/exchange.js';
import { eventually } from '../support/eventually.js';
import { type Heard, hear, startServer, Wire } from './http-server.js';

export const MB = 1024 * 1024;

/** Takes a body as the test says. */
export class Receiver implements BodyStreamReceiver {
  readonly pieces: Buffer[] = [];
  bytes = 0;
  ended = false;
  refusal: GatewayError | null = null;
  discards = 0;
  /** What is done when more comes in spite of a stop. */
  more: (receiver: Receiver) => void = () => {};
  /** Bytes that there is room for beside those that were delivered, and what becomes of a body that needs more. */
  room = Number.POSITIVE_INFINITY;
  onFull: () => void = () => {};
  /** What there is to be room for now, and was at most. */
  waiting = 0;
  mostWaiting = 0;
  readonly #flows: (receiver: Receiver) => boolean;

  constructor(flows: (receiver: Receiver) => boolean = () => true) {
    this.#flows = flows;
  }

  onChunk(chunk: Buffer): boolean {
    this.pieces.push(Buffer.from(chunk));
    this.bytes += chunk.length;
    return this.#flows(this);
  }

  onMore(): void {
    this.more(this);
  }

  onEnd(): void {
    this.ended = true;
  }

  onBodyRefused(error: GatewayError): void {
    this.refusal = error;
  }

  holdWaiting(bytes: number): boolean {
    if (bytes > this.room) {
      this.onFull();
      return false;
    }
    this.waiting = bytes;
    this.mostWaiting = Math.max(this.mostWaiting, bytes);
    return true;
  }

  onDiscarded(): void {
    this.discards++;
  }

  async until(holds: (receiver: Receiver) => boolean): Promise<void> {
    await eventually(() => holds(this), { what: `${holds}` });
  }

  hash(): string {
    const hash = createHash('sha1');
    for (const piece of this.pieces) hash.update(piece);
    return hash.digest('hex');
  }
}

interface Streamed {
  readonly exchange: Exchange;
  readonly heard: Heard;
}

/** A server that streams the body of every POST to `receiver`, and answers everything else with its path. */
export async function startUpload(t: Test, receiver: Receiver, limit = 1000 * MB) {
  let tell: (streamed: Streamed) => void;
  const streamed = new Promise<Streamed>((resolve) => {
    tell = resolve;
  });
  const { port } = await startServer(t, (exchange) => {
    if (exchange.method !== 'POST') {
      exchange.respond(200, '', exchange.path);
      return;
    }
    const heard = hear(exchange);
    exchange.streamBody(limit, receiver);
    tell({ exchange, heard });
  });
  return { wire: new Wire(port), port, streamed };
}

/** The head of an upload of so many bytes. */
export const head = (length: number) => `POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`;
export const chunkedHead = 'POST /up HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n';
/** A request behind the upload. */
export const next = 'GET /next HTTP/1.1\r\nhost: x\r\n\r\n';

/** Bytes that do not repeat soon. */
export function noise(bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  for (let i = 0; i + 4 <= bytes; i += 4) buffer.writeUInt32LE(Math.imul(i, 2654435761) >>> 0, i);
  return buffer;
}

export const hashOf = (bytes: Buffer) => createHash('sha1').update(bytes).digest('hex');
