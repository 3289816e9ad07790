import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { testKey } from './gateway.js';

/** An answer as received, without its chunked coding. */
export interface RawAnswer {
  readonly status: number;
  /** Status line and headers. */
  readonly head: string;
  readonly body: string;
}

/** Returns the text of a chat request with a body, as a client sends it. */
export function chatRequest(body: string | Buffer, headers = ''): Buffer {
  return Buffer.concat([
    Buffer.from(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
        `content-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n`,
    ),
    Buffer.from(body),
  ]);
}

/** Opens a connection and sends the bytes. */
export async function open(port: number, bytes: string | Buffer): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}

/** Sends bytes on a new connection and reads one answer. */
export async function exchange(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  const socket = await open(port, bytes);
  const answer = await readAnswer(socket);
  socket.destroy();
  return answer;
}

/** Reads one answer, or what arrived of it before the connection ended. */
export function readAnswer(socket: Socket): Promise<RawAnswer> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0);
    const finish = (answer: RawAnswer) => {
      socket.off('data', onData);
      socket.off('close', onClose);
      resolve(answer);
    };
    const onData = (data: Buffer) => {
      received = Buffer.concat([received, data]);
      const answer = parse(received, false);
      if (answer !== null) finish(answer);
    };
    const onClose = () => finish(parse(received, true) ?? { status: 0, head: '', body: '' });
    socket.on('data', onData);
    socket.on('close', onClose);
  });
}

function parse(received: Buffer, ended: boolean): RawAnswer | null {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const head = received.toString('latin1', 0, end);
  const status = Number(head.slice(9, 12));
  const rest = received.subarray(end + 4);
  // They have no body (RFC 9112 section 6.3).
  if (status === 204 || status === 304) return { status, head, body: '' };
  const length = /^content-length: *(\d+)$/im.exec(head)?.[1];
  if (length !== undefined) {
    if (rest.length < Number(length) && !ended) return null;
    return { status, head, body: rest.toString('utf8', 0, Number(length)) };
  }
  const pieces: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', at);
    const size = lineEnd === -1 ? Number.NaN : Number.parseInt(rest.toString('latin1', at, lineEnd), 16);
    const whole = size === 0 || lineEnd + 2 + size + 2 <= rest.length;
    if (Number.isNaN(size) || !whole)
      return ended ? { status, head, body: Buffer.concat(pieces).toString() } : null;
    if (size === 0) return { status, head, body: Buffer.concat(pieces).toString() };
    pieces.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
