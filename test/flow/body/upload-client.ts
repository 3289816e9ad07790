import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type RawAnswer, readAnswer } from '../../support/raw-client.js';

/** A client that sends a body bit by bit. */
export interface UploadClient {
  readonly socket: Socket;
  /** What it is answered, or status 0 when the connection ends without. */
  readonly answer: Promise<RawAnswer>;
  /** The answer is there, or the connection has ended. */
  readonly isAnswered: boolean;
  readonly closed: Promise<void>;
  /** Bytes that the other side, or the system between, has taken. */
  readonly taken: number;
  /** Resolves when the system has taken the bytes; never when it does not. */
  send(bytes: Buffer | string): Promise<void>;
}

export async function startUpload(port: number, head: string | Buffer): Promise<UploadClient> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.write(head);
  let isAnswered = false;
  const answer = readAnswer(socket).finally(() => {
    isAnswered = true;
  });
  return {
    socket,
    answer,
    get isAnswered() {
      return isAnswered;
    },
    closed,
    get taken() {
      return socket.bytesWritten - socket.writableLength;
    },
    send: (bytes) => new Promise((resolve) => socket.write(bytes, () => resolve())),
  };
}
