import type { Socket } from 'node:net';
import type { UpstreamRequest } from './types.js';

/** Up to this size a request is copied into one buffer: cheaper than a gathered write. */
const copyLimit = 16 * 1024;

/** Where small requests are put together; another takes its place when the socket has to keep one for later. */
let scratch: Buffer = Buffer.allocUnsafeSlow(copyLimit);

/**
 * Writes a whole request to a connected socket. `content-length` is added where there is a body, and for the methods
 * that are expected to have one (RFC 9110 section 8.6).
 */
export function writeRequest(socket: Socket, request: UpstreamRequest): void {
  const { method, head, body } = request;
  let length = 0;
  for (const piece of body) length += piece.length;
  if (length === 0 && method !== 'POST' && method !== 'PUT' && method !== 'PATCH') {
    socket.write(`${head}\r\n`, 'latin1');
    return;
  }
  const framing = `content-length: ${length}\r\n\r\n`;
  const size = head.length + framing.length + length;
  if (size > copyLimit) {
    socket.cork();
    socket.write(head + framing, 'latin1');
    for (const piece of body) if (piece.length > 0) socket.write(piece);
    socket.uncork();
    return;
  }
  const bytes = scratch;
  let at = bytes.write(head + framing, 0, 'latin1');
  for (const piece of body) {
    bytes.set(piece, at);
    at += piece.length;
  }
  socket.write(bytes.subarray(0, at));
  // Mostly the kernel has it all by now.
  if (socket.writableLength > 0) scratch = Buffer.allocUnsafeSlow(copyLimit);
}
