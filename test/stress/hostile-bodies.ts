import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Attack, hostileKey } from './hostile.js';

const mebibyte = 1024 * 1024;
/** Connections for each kind of body. */
const connectionsEach = 32;
const dripEveryMs = 1000;
const againMs = 200;

const head = (path: string, type: string, framing: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${hostileKey}\r\ncontent-type: ${type}\r\n${framing}\r\n\r\n`;

const announced = `content-length: ${32 * mebibyte}`;
const chunked = 'transfer-encoding: chunked';
const json = 'application/json';
const form = 'multipart/form-data; boundary=x';
const part =
  '--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n';

/** The beginning of a hostile request, and what it sends once a second after that. */
interface Hostile {
  readonly start: Buffer;
  readonly drip: Buffer;
}

const plainChunk = (bytes: number): string => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;

const kinds: readonly Hostile[] = [
  // A body that is announced and never sent.
  { start: Buffer.from(`${head('/v1/chat/completions', json, announced)}{`), drip: Buffer.from(' ') },
  {
    start: Buffer.from(head('/v1/chat/completions', json, chunked) + plainChunk(1)),
    drip: Buffer.from(plainChunk(1)),
  },
  // A megabyte of it is sent, and then no more.
  {
    start: Buffer.from(head('/v1/chat/completions', json, announced) + ' '.repeat(mebibyte)),
    drip: Buffer.alloc(0),
  },
  { start: Buffer.from(head('/v1/audio/transcriptions', form, announced) + part), drip: Buffer.from('a') },
  {
    start: Buffer.from(head('/v1/chat/completions', `${json}\r\ncontent-encoding: gzip`, announced)),
    drip: Buffer.from([0x1f]),
  },
];

/** Holds requests open whose bodies hardly arrive, and begins each again when it is answered or cut. */
export const bodyAttack: Attack = async (port) => {
  const met = new Map<string, number>();
  const sockets = new Set<Socket>();
  let isOver = false;
  const hold = async ({ start, drip }: Hostile): Promise<void> => {
    while (!isOver) {
      const outcome = await attackOnce(port, { start, drip }, sockets);
      if (!isOver) met.set(outcome, (met.get(outcome) ?? 0) + 1);
      await pause(againMs);
    }
  };
  const holders = kinds.flatMap((kind) => Array.from({ length: connectionsEach }, () => hold(kind)));
  return {
    async stop() {
      isOver = true;
      const open = sockets.size;
      for (const socket of sockets) socket.destroy();
      await Promise.all(holders);
      return [`${open} open`, ...[...met].map(([what, count]) => `${count} x ${what}`)].join(', ');
    },
  };
};

function attackOnce(port: number, { start, drip }: Hostile, sockets: Set<Socket>): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let outcome = 'cut';
    sockets.add(socket);
    const timer = setInterval(() => {
      if (drip.length > 0) socket.write(drip);
    }, dripEveryMs);
    socket.on('connect', () => socket.write(start));
    socket.on('error', () => {});
    socket.on('data', (data) => {
      if (outcome === 'cut') outcome = `status ${data.toString('latin1', 9, 12)}`;
      socket.destroy();
    });
    socket.on('close', () => {
      clearInterval(timer);
      sockets.delete(socket);
      resolve(outcome);
    });
  });
}
