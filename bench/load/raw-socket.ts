import { createHash, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

/** Where sessions are opened, and with which key. */
export interface SocketTarget {
  readonly port: number;
  readonly path: string;
  readonly key: string;
}

export interface RawSocketListener {
  /** Called with received bytes of frames, which are valid only until the call returns. */
  onBytes(chunk: Buffer): void;
  /** Called when the connection has ended after it was opened. */
  onBreak(): void;
}

const headEnd = Buffer.from('\r\n\r\n');
const openMs = 10_000;
/** Appended to a client's key to prove that the upgrade was understood (RFC 6455 section 1.3). */
const proofSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** Shared by all sockets, so that the client's own memory has little effect. */
const buffer = Buffer.allocUnsafe(65_536);

/**
 * Opens a WebSocket and passes its bytes on as they arrive, unparsed: its user knows which frames to expect.
 * @throws Error with the answer if the upgrade is refused
 */
export function openRawSocket(target: SocketTarget, listener: RawSocketListener): Promise<Socket> {
  const key = randomBytes(16).toString('base64');
  const proof = createHash('sha1')
    .update(key + proofSuffix)
    .digest('base64');
  return new Promise((resolve, reject) => {
    let answer: Buffer | null = Buffer.alloc(0);

    const takeAnswer = (before: Buffer, chunk: Buffer): void => {
      const all = Buffer.concat([before, chunk]);
      const end = all.indexOf(headEnd);
      answer = all;
      if (end < 0) return;
      const head = all.toString('latin1', 0, end);
      if (!isUpgrade(head, proof)) {
        socket.destroy(new Error(`no upgrade: ${all.toString('latin1', 0, 500).replaceAll('\r\n', ' ')}`));
        return;
      }
      answer = null;
      socket.setTimeout(0);
      resolve(socket);
      if (all.length > end + headEnd.length) listener.onBytes(all.subarray(end + headEnd.length));
    };

    const socket = connect({
      port: target.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer,
        callback: (bytes) => {
          const chunk = buffer.subarray(0, bytes);
          if (answer === null) listener.onBytes(chunk);
          else takeAnswer(answer, chunk);
          return true;
        },
      },
    });
    socket.once('error', reject);
    socket.once('close', () => {
      if (answer === null) listener.onBreak();
      else reject(new Error(`closed after ${answer.length} bytes of an answer`));
    });
    socket.setTimeout(openMs, () => socket.destroy(new Error('no answer to the upgrade in time')));
    socket.write(
      `GET ${target.path} HTTP/1.1\r\nhost: 127.0.0.1:${target.port}\r\nauthorization: Bearer ${target.key}\r\n` +
        `connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n` +
        'sec-websocket-protocol: realtime\r\n\r\n',
    );
  });
}

function isUpgrade(head: string, proof: string): boolean {
  const has = (name: string, value: string): boolean =>
    head.split('\r\n').some((line) => line.toLowerCase().startsWith(`${name}:`) && line.endsWith(value));
  return (
    head.startsWith('HTTP/1.1 101') &&
    has('sec-websocket-accept', proof) &&
    has('sec-websocket-protocol', 'realtime')
  );
}
