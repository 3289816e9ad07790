import { createHash, type Hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { patternBytes } from '../../src/simulator/media/file.js';
import { AnswerReader } from '../support/load/answer-reader.js';
import { loadKey } from '../support/load/request.js';

/** A range of a pattern's bytes: the first, and the one after the last. */
interface Part {
  readonly from: number;
  readonly to: number;
}

/** Digest of a range of the pattern that the simulator's large videos consist of. */
export function patternDigest(part: Part): string {
  const hash = createHash('sha256');
  for (const piece of patternBytes(part)) hash.update(piece);
  return hash.digest('hex');
}

/** A whole body, as sent or received. */
interface Digest {
  readonly bytes: number;
  readonly sha256: string;
}

/** An upstream that answers every transcription with an empty text, and keeps only a digest of its body. */
export interface HashingUpstream {
  /** For `baseUrl`. */
  readonly url: string;
  /** Digests of the bodies that arrived completely. */
  readonly received: readonly Digest[];
  stop(): void;
}

export async function startHashingUpstream(): Promise<HashingUpstream> {
  const received: Digest[] = [];
  const server = createServer((request, response) => {
    digestOf(request).then(
      (digest) => {
        received.push(digest);
        response.setHeader('content-type', 'application/json');
        response.end('{"text":""}');
      },
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    received,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function digestOf(request: IncomingMessage): Promise<Digest> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** An answer to an upload, and what was sent of its form. */
export interface Uploaded {
  readonly status: number;
  readonly text: string;
  readonly sent: Digest;
}

/**
 * Sends a form with a file of this many bytes of the pattern for transcription, as fast as possible or at a pace.
 * The file is not kept in memory.
 */
export async function upload(
  port: number,
  fileBytes: number,
  bytesPerSecond = Number.POSITIVE_INFINITY,
): Promise<Uploaded> {
  const boundary = 'a-boundary-of-the-upload';
  const before = Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\nears\r\n--${boundary}\r\n` +
      'content-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n',
  );
  const after = Buffer.from(`\r\n--${boundary}--\r\n`);
  const bytes = before.length + fileBytes + after.length;
  const socket = connect(port, '127.0.0.1');
  const reader = new AnswerReader();
  const answered = new Promise<void>((resolve, reject) => {
    socket.on('data', (data) => {
      if (!reader.push(data)) resolve();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`the connection of the upload ended: ${reader.head}`)));
  });
  // A refusal may arrive while the file is still being sent.
  answered.catch(() => {});
  const hash = createHash('sha256');
  const send = async (piece: Buffer): Promise<void> => {
    hash.update(piece);
    if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), answered]);
  };
  socket.write(
    `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: load\r\nauthorization: Bearer ${loadKey}\r\n` +
      `content-type: multipart/form-data; boundary=${boundary}\r\ncontent-length: ${bytes}\r\n\r\n`,
  );
  await send(before);
  const begunAt = performance.now();
  let sentBytes = 0;
  for (const piece of patternBytes({ from: 0, to: fileBytes })) {
    if (reader.done) break;
    await send(piece);
    sentBytes += piece.length;
    const early = (sentBytes / bytesPerSecond) * 1000 - (performance.now() - begunAt);
    if (early > 1) await new Promise((resolve) => setTimeout(resolve, early));
  }
  await send(after);
  await answered;
  socket.destroy();
  return { status: reader.status, text: reader.text, sent: { bytes, sha256: hash.digest('hex') } };
}

/** A download that was read at full speed. */
interface Downloaded {
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly bytes: number;
}

interface DownloadOptions {
  readonly port: number;
  readonly id: string;
  /** Called with every byte. */
  readonly hash: Hash;
  /** Further header lines, each followed by CRLF. */
  readonly lines?: string;
  /** Disconnect after at least this many bytes. */
  readonly leaveAfter?: number;
}

/** Reads a task's content, or disconnects in the middle of it. */
export function download(options: DownloadOptions): Promise<Downloaded> {
  const { port, id, hash, leaveAfter = Number.POSITIVE_INFINITY } = options;
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const reader = new BodyReader((bytes) => hash.update(bytes));
    const finish = (): void => {
      socket.destroy();
      const { status, bytes, header } = reader;
      resolve({ status, bytes, header });
    };
    socket.on('data', (data) => {
      reader.push(data);
      if (reader.done || reader.bytes >= leaveAfter) finish();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`the download ended after ${reader.bytes} bytes`)));
    socket.write(contentRequest(id, options.lines));
  });
}

/** Returns the bytes of a request for a task's content. */
export function contentRequest(id: string, lines = ''): string {
  return `GET /v1/videos/${id}/content HTTP/1.1\r\nhost: load\r\nauthorization: Bearer ${loadKey}\r\n${lines}\r\n`;
}

/** Reads the head of an answer with a content-length, and passes its body on without keeping any of it. */
export class BodyReader {
  status = 0;
  /** Bytes of the body so far. */
  bytes = 0;
  #head = '';
  #length = Number.POSITIVE_INFINITY;
  readonly #onBytes: (bytes: Buffer) => void;

  constructor(onBytes: (bytes: Buffer) => void) {
    this.#onBytes = onBytes;
  }

  get done(): boolean {
    return this.status !== 0 && this.bytes >= this.#length;
  }

  /** Value of a header of the answer, or null. */
  readonly header = (name: string): string | null =>
    new RegExp(`^${name}: *(.*)$`, 'im').exec(this.#head)?.[1]?.trim() ?? null;

  push(data: Buffer): void {
    if (this.status !== 0) {
      this.#take(data);
      return;
    }
    const before = this.#head.length;
    this.#head += data.toString('latin1');
    const end = this.#head.indexOf('\r\n\r\n');
    if (end === -1) return;
    this.#head = this.#head.slice(0, end);
    this.status = Number(this.#head.slice(9, 12));
    this.#length = Number(this.header('content-length') ?? Number.NaN);
    this.#take(data.subarray(end + 4 - before));
  }

  #take(data: Buffer): void {
    this.bytes += data.length;
    if (data.length > 0) this.#onBytes(data);
  }
}
