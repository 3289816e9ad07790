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
 * Refuses a body that is announced as larger than `limit` bytes. If the connection goes on it is read and thrown away:
 * when nobody takes what a client sends, uWS cuts it ten seconds after its answer, else only one below 16 KB a second.
 */
export function refuseAnnounced(
  response: HttpResponse,
  limit: number,
  receiver: Pick<BodyReceiver, 'onBodyRefused'>,
): void {
  response.onData(() => {});
  receiver.onBodyRefused(tooLarge(limit));
}

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
    refuseAnnounced(response, limit, receiver);
    return;
  }
  if (exchange.head.chunked) exchange.bodyExpected();
  let body: Buffer = announced > 0 ? exchange.bodyBuffer(announced) : emptyBody;
  let length = 0;
  let refused = false;
  response.onData((chunk, isLast) => {
    // The body of an answered exchange has no room any more: that belongs to others by now.
    if (refused || exchange.isAnswered) return;
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
    if (!isLast) {
      exchange.bodyExpected();
      return;
    }
    exchange.bodyComplete();
    receiver.onBody(length === body.length ? body : body.subarray(0, length));
  });
}

function grown(body: Buffer, length: number, capacity: number): Buffer {
  const larger = Buffer.allocUnsafe(capacity);
  larger.set(body.subarray(0, length));
  return larger;
}

/** The error for a body of more than `limit` bytes. */
export function tooLarge(limit: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `The request body is larger than the ${limit} bytes allowed here.`,
  );
}
