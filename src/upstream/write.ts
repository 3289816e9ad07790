import type { Socket } from 'node:net';
import { type Guarded, handFault } from '../errors.js';
import type { NumberedHead } from '../wire/head.js';
import type { UpstreamRequest } from './types.js';

/** A request that is not copied into one buffer. */
interface Large {
  readonly text: string;
  readonly body: readonly Buffer[];
}

/** Requests up to this size are copied into one buffer, which is cheaper than a gathered write. */
const copyLimit = 16 * 1024;
/**
 * Size of the buffer for the small requests of one turn of the event loop. When it is full, the batch is sent early.
 */
const batchBytes = 256 * 1024;

/** The connection that a request is written to. */
export interface RequestSink extends Guarded {
  readonly socket: Socket;
  /** True for TLS, whose writes complete one turn of the event loop later at the earliest. */
  readonly secure: boolean;
  /** Called before the request's bytes are written. Bytes that arrive from now on may be an answer. */
  onWrite(): void;
}

/** Hands requests to their sockets. */
export interface RequestWriter {
  /**
   * Writes a whole request to a connected socket at the end of the turn, or earlier if there are many. `content-length`
   * is added if there is a body, and for the methods that are expected to have one (RFC 9110 section 8.6).
   * @returns true when the request was copied: the buffers of its body are not read after this
   */
  write(sink: RequestSink, request: UpstreamRequest): boolean;
}

/**
 * Creates a writer that sends requests together, after the event loop has processed its input. An upstream that is
 * woken once for many requests also costs the gateway less (measured with 32 connections: 5 % of the gateway's time for
 * a 1 KB call). Large requests wait as well, so that bytes that an idle connection has received are seen before its
 * next request is sent.
 */
export function createRequestWriter(): RequestWriter {
  const sinks: RequestSink[] = [];
  /** For each sink, its request or the copy of it. */
  const requests: (Buffer | Large)[] = [];
  let batch = Buffer.allocUnsafeSlow(batchBytes);
  let used = 0;
  let armed = false;

  const flush = (): void => {
    armed = false;
    let kept = false;
    for (let i = 0; i < sinks.length; i++) {
      const sink = sinks[i] as RequestSink;
      const request = requests[i] as Buffer | Large;
      const isCopy = Buffer.isBuffer(request);
      const { socket } = sink;
      // The request was given up in the same turn.
      if (socket.destroyed) continue;
      try {
        sink.onWrite();
        if (isCopy) socket.write(request);
        else writeLarge(socket, request);
      } catch (fault) {
        handFault(sink, 'upstream', fault);
      }
      kept ||= isCopy && !sink.secure && socket.writableLength > 0;
    }
    sinks.length = 0;
    requests.length = 0;
    used = 0;
    // A socket whose data the kernel has not fully accepted still reads from the batch.
    if (kept) batch = Buffer.allocUnsafeSlow(batchBytes);
  };

  const enqueue = (sink: RequestSink, request: Buffer | Large): void => {
    sinks.push(sink);
    requests.push(request);
    if (armed) return;
    armed = true;
    setImmediate(flush);
  };

  return {
    write(sink, request) {
      const { body } = request;
      let length = 0;
      for (const piece of body) length += piece.length;
      const head = framed(request, length);
      const size = (typeof head === 'string' ? head.length : head.sizeWith(length)) + length;
      if (size > copyLimit) {
        enqueue(sink, { text: typeof head === 'string' ? head : head.textWith(length), body });
        return false;
      }
      if (sink.secure) {
        // TLS would still read from the shared batch afterwards, so that every turn would need a new one.
        const own = Buffer.allocUnsafe(size);
        put(own, 0, head, body, length);
        enqueue(sink, own);
        return true;
      }
      if (used + size > batchBytes) flush();
      const start = used;
      used = put(batch, start, head, body, length);
      enqueue(sink, batch.subarray(start, used));
      return true;
    },
  };
}

/** Adds the framing to the head. A `NumberedHead` writes its own. @param length of the body */
function framed({ method, head }: UpstreamRequest, length: number): string | NumberedHead {
  if (typeof head !== 'string') return head;
  const isBodied = length > 0 || method === 'POST' || method === 'PUT' || method === 'PATCH';
  return isBodied ? `${head}content-length: ${length}\r\n\r\n` : `${head}\r\n`;
}

function writeLarge(socket: Socket, { text, body }: Large): void {
  socket.cork();
  socket.write(text, 'latin1');
  for (const piece of body) if (piece.length > 0) socket.write(piece);
  socket.uncork();
}

/** Writes a request to a buffer. @param length of the body @returns the offset of the end */
function put(
  target: Buffer,
  start: number,
  head: string | NumberedHead,
  body: readonly Buffer[],
  length: number,
): number {
  let at =
    typeof head === 'string'
      ? start + target.write(head, start, 'latin1')
      : head.writeTo(target, start, length);
  for (const piece of body) {
    target.set(piece, at);
    at += piece.length;
  }
  return at;
}
