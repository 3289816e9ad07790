import type { HttpResponse } from 'uWebSockets.js';
import { GatewayError } from '../errors.js';
import type { Exchange } from './exchange.js';

/** Takes a request body. Exactly one of the two is called, once, unless the client leaves before. */
export interface BodyReceiver {
  /** The whole body; the receiver owns the buffer. */
  onBody(body: Buffer): void;
  onBodyRefused(error: GatewayError): void;
  /**
   * A body of unknown length is about to take up so many bytes.
   * @returns false when there is no room for them; the receiver has then answered, and is not called again
   */
  reserve(bytes: number): boolean;
}

const firstChunkedBytes = 16 * 1024;
const emptyBody: Buffer = Buffer.alloc(0);

/**
 * Collects a request body of at most `limit` bytes: into one buffer of the announced size, or, for a chunked
 * body, into one that doubles. uWS's chunks are valid only in their callback, so this copy is the one that has
 * to be made.
 */
export function collectBody(
  exchange: Exchange,
  response: HttpResponse,
  limit: number,
  receiver: BodyReceiver,
): void {
  const announced = exchange.head.contentLength;
  if (announced > limit) {
    receiver.onBodyRefused(tooLarge(limit));
    return;
  }
  let body: Buffer = announced > 0 ? exchange.bodyBuffer(announced) : emptyBody;
  let length = 0;
  let refused = false;
  response.onData((chunk, isLast) => {
    if (refused) return;
    const size = chunk.byteLength;
    if (size > 0) {
      if (length + size > body.length) {
        if (length + size > limit) {
          refused = true;
          receiver.onBodyRefused(tooLarge(limit));
          return;
        }
        const capacity = Math.min(limit, Math.max(length + size, body.length * 2, firstChunkedBytes));
        if (!receiver.reserve(capacity)) {
          refused = true;
          return;
        }
        body = grown(body, length, capacity);
      }
      body.set(new Uint8Array(chunk), length);
      length += size;
      exchange.bytesIn = length;
    }
    if (isLast) receiver.onBody(length === body.length ? body : body.subarray(0, length));
  });
}

function grown(body: Buffer, length: number, capacity: number): Buffer {
  const larger = Buffer.allocUnsafe(capacity);
  larger.set(body.subarray(0, length));
  return larger;
}

function tooLarge(limit: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `The request body is larger than the ${limit} bytes allowed here.`,
  );
}
