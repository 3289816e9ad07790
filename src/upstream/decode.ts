/** Decodes answers that are compressed although the request did not ask for it. Applies backpressure. */

import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { type Guarded, guard, type UpstreamFailureReason } from '../errors.js';
import { ParsedHead } from './answer.js';
import type { ResponseHead, UpstreamHandler } from './types.js';

/** The request whose answer is decoded. */
interface DecodedExchange extends Guarded {
  readonly over: boolean;
  readonly handler: UpstreamHandler;
  readonly connection: { resume(): void } | null;
  complete(): void;
  fail(reason: UpstreamFailureReason, detail: string): void;
}

type Coding = 'gzip' | 'deflate' | 'br';

function codingOf(value: string | null): Coding | null {
  switch (value) {
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
    case 'br':
      return value;
    default:
      return null;
  }
}

/** Returns the decoder for an answer, or null if its coding is unknown and its bytes are passed on unchanged. */
export function decodeContent(exchange: DecodedExchange, head: ParsedHead): ContentDecoder | null {
  const coding = codingOf(head.contentCoding);
  return coding === null ? null : new ContentDecoder(exchange, coding);
}

/**
 * Decodes between a connection and the handler, one read at a time. The connection stays paused until zlib has consumed
 * the read and the handler accepts more. zlib itself stops while its output is not taken, so that a small body that
 * expands to gigabytes costs no memory.
 */
export class ContentDecoder {
  readonly #exchange: DecodedExchange;
  readonly #coding: Coding;
  #stream: Transform | null = null;
  /** True while the handler has paused. */
  #paused = false;
  /** True until zlib has consumed the last read. */
  #writing = false;
  /** True once the compressed stream is complete. Padding that may follow it in the body is ignored. */
  #decoded = false;
  #wireEnded = false;

  constructor(exchange: DecodedExchange, coding: Coding) {
    this.#exchange = exchange;
    this.#coding = coding;
  }

  /** Passes the head on without the fields that describe only the compressed body. */
  onHead(head: ResponseHead): void {
    const plain = new ParsedHead();
    plain.status = head.status;
    plain.contentType = head.contentType;
    const { fields } = head;
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string;
      if (name !== 'content-encoding' && name !== 'content-length') {
        plain.fields.push(name, fields[i + 1] as string);
      }
    }
    this.#exchange.handler.onHead(plain);
  }

  onData(chunk: Buffer): boolean {
    if (this.#decoded) return true;
    this.#stream ??= this.#open(chunk);
    this.#writing = true;
    const taken = (): void => {
      this.#writing = false;
      this.#pull();
    };
    this.#stream.write(Buffer.from(chunk), guard('upstream', this.#exchange, taken));
    return false;
  }

  /** Called when the last byte of the body has been read. */
  onEnd(): void {
    this.#wireEnded = true;
    if (this.#stream === null || this.#decoded) this.#exchange.complete();
    else this.#stream.end();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#stream?.resume();
    this.#pull();
  }

  destroy(): void {
    this.#stream?.destroy();
  }

  #open(first: Buffer): Transform {
    const stream = createStream(this.#coding, first);
    const onData = (chunk: Buffer): void => {
      if (this.#exchange.over || this.#exchange.handler.onData(chunk)) return;
      this.#paused = true;
      stream.pause();
    };
    const onEnd = (): void => {
      this.#decoded = true;
      this.#writing = false;
      if (this.#wireEnded) this.#exchange.complete();
      else this.#pull();
    };
    stream.on('data', guard('upstream', this.#exchange, onData));
    stream.on('end', guard('upstream', this.#exchange, onEnd));
    // Needs no `guard`, since `fail` never throws.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      this.#exchange.fail('malformed_answer', `broken ${this.#coding} body: ${error.code ?? error.message}`);
    });
    return stream;
  }

  #pull(): void {
    if (!this.#writing && !this.#paused) this.#exchange.connection?.resume();
  }
}

function createStream(coding: Coding, first: Buffer): Transform {
  if (coding === 'gzip') return createGunzip();
  if (coding === 'br') return createBrotliDecompress();
  // RFC 9110 section 8.4.1.2 means the zlib format, but some servers send raw deflate. The first byte distinguishes
  // them.
  return ((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
}
