import { type AddressInfo, createServer, type Socket } from 'node:net';
import { jsonAnswer, streamAnswer } from './answers.js';

const headEnd = Buffer.from('\r\n\r\n');
const lengthRequired = 'HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';

/**
 * The bench upstream on `node:net`. It reads only the path and the length of a request, and answers with one prepared
 * buffer. It is the faster engine for whole streams, which are sent in a single write.
 * @returns its port on the loopback interface
 */
export function listenWithNet(): Promise<number> {
  const json = jsonAnswer();
  const stream = streamAnswer();
  const server = createServer({ noDelay: true }, (socket) => {
    const read = createReader(socket, (isStream) => socket.write(isStream ? stream : json));
    socket.on('data', read);
    socket.on('error', () => socket.destroy());
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () =>
      resolve((server.address() as AddressInfo).port),
    );
  });
}

/** Returns a function that takes the bytes of one connection and calls `answer` at the end of each request. */
function createReader(socket: Socket, answer: (isStream: boolean) => void): (chunk: Buffer) => void {
  let pending: Buffer | null = null;
  let missing = 0;
  let isStream = false;
  return (chunk) => {
    let rest = chunk;
    if (missing > 0) {
      if (rest.length < missing) {
        missing -= rest.length;
        return;
      }
      rest = rest.subarray(missing);
      missing = 0;
      answer(isStream);
    }
    if (pending) {
      rest = Buffer.concat([pending, rest]);
      pending = null;
    }
    while (rest.length > 0) {
      const end = rest.indexOf(headEnd);
      if (end < 0) {
        pending = rest;
        return;
      }
      const head = rest.toString('latin1', 0, end);
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
      if (length === undefined) {
        socket.end(lengthRequired);
        return;
      }
      isStream = head.startsWith('POST /sse/');
      const total = end + headEnd.length + Number(length);
      if (rest.length < total) {
        missing = total - rest.length;
        return;
      }
      answer(isStream);
      rest = rest.subarray(total);
    }
  };
}
