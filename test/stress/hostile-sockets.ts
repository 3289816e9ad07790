import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { frame, openRaw, type RawSocket } from '../support/raw-socket.js';
import { type Attack, type AttackPlan, hostileKey } from './hostile.js';

const mebibyte = 1024 * 1024;
const piece = Buffer.alloc(mebibyte / 4, 0x20);
const fragments = [1, 0].map((opcode) => frame(piece, { opcode, fin: false }));
/** Default of `sockets.messageBytes`. */
const messageBytes = 16 * mebibyte;
const path = '/v1/responses';

/** How a socket avoids the end of a message. */
type Unfinished = (socket: RawSocket) => Promise<void>;

async function write(socket: Socket, bytes: Buffer): Promise<void> {
  if (socket.write(bytes) || socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      socket.off('drain', go).off('close', go);
      resolve();
    };
    socket.once('drain', go).once('close', go);
  });
}

/** Announces the largest message, and sends all of it except its last bytes. */
const inOneFrame: Unfinished = async ({ socket }) => {
  await write(socket, frame('', { announced: messageBytes }));
  for (let sent = 0; sent < messageBytes - piece.length && !socket.destroyed; sent += piece.length)
    await write(socket, piece);
};

/** The same in fragments, of which none is the last, with an answer to every ping. */
const inFragments: Unfinished = async (raw) => {
  const { socket } = raw;
  let heard = 0;
  socket.on('data', () => {
    for (; heard < raw.heard.length; heard++) {
      const { opcode, payload } = raw.heard[heard] as RawSocket['heard'][number];
      if (opcode === 9 && !socket.destroyed) socket.write(frame(payload, { opcode: 10 }));
    }
  });
  for (let sent = 0; sent < messageBytes - piece.length && !socket.destroyed; sent += piece.length)
    await write(socket, fragments[sent === 0 ? 0 : 1] as Buffer);
};

/** Keeps this many sockets within messages that never end, and replaces those that are closed. */
export function unfinishedMessages({
  sockets,
  within,
}: Extract<AttackPlan, { readonly kind: 'sockets' }>): Attack {
  const unfinished = within === 'one frame' ? inOneFrame : inFragments;
  return async (port) => {
    let stopped = false;
    const open = new Set<RawSocket>();
    const met = { opened: 0, closed: 0, refused: 0 };
    const keep = async (): Promise<void> => {
      while (!stopped) {
        try {
          const socket = await openRaw(port, { path, key: hostileKey });
          met.opened++;
          open.add(socket);
          await unfinished(socket);
          await socket.closed;
          open.delete(socket);
          met.closed++;
        } catch {
          met.refused++;
        }
        await pause(100);
      }
    };
    for (let number = 0; number < sockets; number++) void keep();
    return {
      async stop() {
        stopped = true;
        for (const { socket } of open) socket.destroy();
        return `${met.opened} sockets opened, ${met.closed} closed, ${met.refused} refused`;
      },
    };
  };
}
