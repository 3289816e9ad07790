import { connect, type Socket } from 'node:net';

const headEnd = Buffer.from('\r\n\r\n');

export interface AnswerListener {
  /** A whole answer with a `content-length` has arrived. */
  onAnswer(status: number): void;
  /** The connection ended, or sent an answer without a length. */
  onBreak(): void;
}

/**
 * Opens a keep-alive connection that reads no more of an answer than its status and its length, into one buffer that
 * is used again for every read.
 * @throws Error when the connection is refused
 */
export function openConnection(port: number, listener: AnswerListener): Promise<Socket> {
  let pending: Buffer | null = null;
  let missing = 0;
  let status = 0;

  const take = (chunk: Buffer): void => {
    let rest = chunk;
    if (missing > 0) {
      missing -= rest.length;
      if (missing === 0) listener.onAnswer(status);
      return;
    }
    if (pending) rest = Buffer.concat([pending, rest]);
    pending = null;
    const end = rest.indexOf(headEnd);
    if (end < 0) {
      pending = Buffer.from(rest);
      return;
    }
    const head = rest.toString('latin1', 0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    status = Number(head.slice(9, 12));
    if (length === undefined) {
      socket.destroy();
      return;
    }
    missing = end + headEnd.length + Number(length) - rest.length;
    if (missing === 0) listener.onAnswer(status);
  };

  const socket = connect({
    port,
    host: '127.0.0.1',
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafe(65_536),
      callback: (bytes, buffer) => {
        take(Buffer.from(buffer.buffer, buffer.byteOffset, bytes));
        return true;
      },
    },
  });
  socket.once('close', () => listener.onBreak());
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', () => resolve(socket));
  });
}
