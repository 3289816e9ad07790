import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';
import { Arrivals } from './arrivals.js';
import { jsonAnswer } from './raw-upstream.js';

/** A request whose body an upstream receives, from its head on. */
export interface UploadArrival {
  /** Request line and headers, without the empty line. */
  readonly head: string;
  readonly socket: Socket;
  /** Bytes of the body so far, without their framing. */
  readonly received: number;
  /** All of the body has come. */
  readonly isWhole: boolean;
  /** The body as far as it has come. */
  body(): Buffer;
  /** Resolves when so many bytes of the body have come. */
  until(bytes: number): Promise<void>;
  /** Resolves with the body when all of it has come. */
  whole(): Promise<Buffer>;
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
}

export interface UploadUpstream {
  /** For `baseUrl`: ends in `/v1`. */
  readonly url: string;
  readonly arrivals: readonly UploadArrival[];
  /** Resolves with the request of that number (from 0) as soon as its head is there. */
  arrival(index: number): Promise<UploadArrival>;
}

export interface UploadUpstreamOptions {
  /** When the head has come: the socket may be paused, answered or destroyed. */
  readonly onHead?: (arrival: UploadArrival, index: number) => void;
  /** When all has come; a transcription with the text `heard` unless given. */
  readonly onWhole?: (arrival: UploadArrival, index: number) => void;
}

export const heard = jsonAnswer(200, '{"text":"heard"}');

/** An upstream that takes one request on each connection, of known length or chunked. It ends with the test. */
export async function startUploadUpstream(
  t: Test,
  { onHead = () => {}, onWhole = ({ socket }) => socket.write(heard) }: UploadUpstreamOptions = {},
): Promise<UploadUpstream> {
  const arrivals = new Arrivals<Arrival>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    let text = Buffer.alloc(0);
    let current: Arrival | null = null;
    socket.on('data', (data) => {
      if (current === null) {
        text = Buffer.concat([text, data]);
        const end = text.indexOf('\r\n\r\n');
        if (end === -1) return;
        current = new Arrival(text.toString('latin1', 0, end), socket);
        data = text.subarray(end + 4);
        text = Buffer.alloc(0);
        onHead(current, arrivals.all.length);
        arrivals.add(current);
      }
      const arrival = current;
      if (!arrival.take(data)) return;
      // The next request on the connection begins after the answer to this one.
      current = null;
      onWhole(arrival, arrivals.all.indexOf(arrival));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    arrivals: arrivals.all,
    arrival: (index) => arrivals.at(index),
  };
}

class Arrival implements UploadArrival {
  readonly head: string;
  readonly socket: Socket;
  readonly closed: Promise<void>;
  received = 0;
  isWhole = false;
  readonly #length: number;
  readonly #pieces: Buffer[] = [];
  /** Of a chunked body, what is still to be taken apart. */
  #raw = Buffer.alloc(0);
  readonly #waiting = new Set<() => void>();

  constructor(head: string, socket: Socket) {
    this.head = head;
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.on('close', () => resolve()));
    const length = /^content-length: *(\d+)$/im.exec(head)?.[1];
    this.#length = length === undefined ? -1 : Number(length);
  }

  /** @returns true when this was the last of the body */
  take(data: Buffer): boolean {
    if (this.#length >= 0) {
      this.#add(data);
      this.isWhole = this.received >= this.#length;
    } else this.#unchunk(data);
    for (const look of [...this.#waiting]) look();
    return this.isWhole;
  }

  body(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  until(bytes: number): Promise<void> {
    return this.#when(() => this.received >= bytes);
  }

  async whole(): Promise<Buffer> {
    await this.#when(() => this.isWhole);
    return this.body();
  }

  #when(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!condition()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  #add(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.received += bytes.length;
  }

  #unchunk(data: Buffer): void {
    this.#raw = Buffer.concat([this.#raw, data]);
    for (;;) {
      const lineEnd = this.#raw.indexOf('\r\n');
      if (lineEnd === -1) return;
      const size = Number.parseInt(this.#raw.toString('latin1', 0, lineEnd), 16);
      if (this.#raw.length < lineEnd + 2 + size + 2) return;
      if (size > 0) this.#add(this.#raw.subarray(lineEnd + 2, lineEnd + 2 + size));
      else this.isWhole = true;
      this.#raw = this.#raw.subarray(lineEnd + 2 + size + 2);
    }
  }
}
