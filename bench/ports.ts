import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Process } from './proc.js';

/** Returns a loopback port that was free a moment ago, for servers that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/**
 * Waits until a server accepts connections.
 * @throws Error if its process ends first, or after a minute: a config with 100,000 keys takes long
 */
export async function untilListening(port: number, server: Process): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await answers(port))) {
    if (!server.alive()) throw new Error(`${server.name} ended at start: ${server.complaints()}`);
    if (performance.now() > deadline)
      throw new Error(`${server.name} does not listen: ${server.complaints()}`);
    await wait(20);
  }
}
