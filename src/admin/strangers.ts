import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Connections of a listener on which nobody with a token is asking for anything. */
export interface Strangers {
  /** One of them has shown a token, and is none until its answer has ended. */
  admit(response: ServerResponse): void;
}

/**
 * Bounds the connections that anybody may open and hold, by requests that never end or answers that are not read: where
 * there are too many, the one that has been there longest gives way, so that operators always find room.
 */
export function boundStrangers(server: Server, most: number): Strangers {
  const strangers = new Set<Socket>();
  server.on('connection', (socket) => {
    strangers.add(socket);
    socket.once('close', () => strangers.delete(socket));
    if (strangers.size <= most) return;
    const [oldest] = strangers;
    oldest?.destroy();
  });
  return {
    admit(response) {
      const { socket } = response;
      if (socket === null) return;
      strangers.delete(socket);
      response.once('close', () => {
        if (!socket.destroyed) strangers.add(socket);
      });
    },
  };
}
