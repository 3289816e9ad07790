import { connect, type Socket } from 'node:net';

const headEnd = Buffer.from('\r\n\r\n');

interface AnswerListener {
  /** Called when a whole answer with a `content-length` has arrived. @param length of its body */
  onAnswer(status: number, length: number): void;
  /** Called with the number of answer bytes that have arrived. */
  onBytes?(count: number): void;
  /** Called when the connection has ended, or an answer has no length. */
  onBreak(): void;
}

/**
 * Opens a keep-alive connection that reads only the status and the length of an answer, into one buffer that is
 * reused for every read.
 * @param readBytes size of that buffer
 * @throws Error if the connection is refused
 */
export function openConnection(port: number, listener: AnswerListener, readBytes = 65_536): Promise<Socket> {
  let pending: Buffer | null = null;
  let missing = 0;
  let status = 0;
  let length = 0;

  const take = (chunk: Buffer): void => {
    let rest = chunk;
    if (missing > 0) {
      missing -= rest.length;
      if (missing === 0) listener.onAnswer(status, length);
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
    const announced = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    status = Number(head.slice(9, 12));
    if (announced === undefined) {
      socket.destroy();
      return;
    }
    length = Number(announced);
    missing = end + headEnd.length + length - rest.length;
    if (missing === 0) listener.onAnswer(status, length);
  };

  const socket = connect({
    port,
    host: '127.0.0.1',
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafe(readBytes),
      callback: (bytes, buffer) => {
        listener.onBytes?.(bytes);
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
