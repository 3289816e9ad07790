import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';

/** A relay to a port of this host that can be interrupted. */
export interface Relay {
  readonly port: number;
  /** From now on nothing passes in either direction, without notice, like a pulled cable. */
  cut(): void;
  /** Ends the interrupted connections, and relays new ones. */
  mend(): void;
}

/** Starts a relay to a port of 127.0.0.1, which ends with the test. */
export async function startRelay(t: Pick<Test, 'teardown'>, port: number): Promise<Relay> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on('error', () => {});
    return socket.on('close', () => sockets.delete(socket));
  };
  const pass = (from: Socket, to: Socket): void => {
    from.on('data', (data) => {
      if (!isCut) to.write(data);
    });
    from.on('close', () => {
      if (!isCut) to.destroy();
    });
  };
  const server = createServer((near) => {
    keep(near);
    if (isCut) return;
    const far = keep(connect(port, '127.0.0.1'));
    pass(near, far);
    pass(far, near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  t.teardown(() => {
    endAll();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true;
    },
    mend() {
      endAll();
      isCut = false;
    },
  };
}
