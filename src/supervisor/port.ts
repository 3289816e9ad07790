import { lookup } from 'node:dns/promises';
import { connect, createServer } from 'node:net';
import { formatAuthority } from '../wire/authority.js';

/** Ports from which a free one is picked: Linux gives those above to clients, one of which may be taken at any moment. */
const lowestFree = 10_240;
const highestFree = 32_767;
const mostPicks = 100;

/** Somebody listens on the port. */
export class PortInUseError extends Error {}

/** What Node's errors of sockets have. */
export interface SocketError extends Error {
  readonly code?: string;
  readonly syscall?: string;
}

/**
 * Makes sure that nobody listens on a port yet. Workers share theirs through SO_REUSEPORT, so a second gateway would
 * be let in as well, without a word, and take half of the connections.
 * @param port 0 picks a free one, which no other process picks as long as this one lives. The workers cannot do it: uWS
 * sets SO_REUSEPORT only for a port that is given.
 * @returns the port
 * @throws PortInUseError when somebody does
 * @throws Error that says in plain words why the port cannot be had otherwise
 */
export async function claimPort(host: string, port: number): Promise<number> {
  if (port !== 0) {
    await probePort(host, port);
    return port;
  }
  for (let picks = 0; picks < mostPicks; picks++) {
    const picked = lowestFree + Math.floor(Math.random() * (highestFree - lowestFree + 1));
    try {
      await probePort(host, picked);
      if (await holdPick(picked)) return picked;
    } catch (error) {
      if (!(error instanceof PortInUseError)) throw error;
    }
  }
  throw new Error(`of ${mostPicks} ports of ${host} none is free`);
}

/**
 * Two processes that pick a port at once may both find it free, for until their workers listen nobody does. So a pick is
 * held by a name in the kernel's abstract namespace (unix(7)), which goes with its process; other systems have none.
 * @returns false when another process, or this one, has picked it before
 */
function holdPick(port: number): Promise<boolean> {
  const holder = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    holder.once('error', (error: SocketError) => resolve(error.code !== 'EADDRINUSE'));
    holder.listen(`\0model-gateway/picked/${port}`, () => {
      holder.unref();
      resolve(true);
    });
  });
}

/** Where another process has the port. */
const advice = 'choose another --port, or --take-over from a gateway';

/** Where no TCP connection can go: systems refuse to open one there before anything is sent (RFC 9293, MUST-46). */
const multicast = { v4: '224.0.0.1', v6: 'ff02::1' } as const;

/**
 * Binds a socket to the port and opens it to nobody. One that listened, however shortly, would take the connections of
 * clients that try until the gateway is there, and reset them.
 */
async function probePort(host: string, port: number): Promise<void> {
  const { address, family } = await lookup(host).catch((error: SocketError) => {
    throw portError(error, host, port, advice);
  });
  const probe = connect({
    host: family === 6 ? multicast.v6 : multicast.v4,
    port,
    localAddress: address,
    localPort: port,
  });
  const error = await new Promise<SocketError | null>((resolve) => {
    probe.once('error', resolve);
    probe.once('connect', () => resolve(null));
  });
  probe.destroy();
  if (error?.syscall !== 'bind') return;
  throw portError(error, host, port, advice);
}

/**
 * Says in plain words why a port cannot be had.
 * @param advice what to do where another process has it
 */
export function portError(error: SocketError, host: string, port: number, advice: string): Error {
  const authority = formatAuthority(host, port);
  if (error.code === 'EADDRINUSE')
    return new PortInUseError(`${authority} is in use by another process; ${advice}`);
  if (error.code === 'EACCES')
    return new Error(`${authority} may not be used by this user (ports below 1024 need the right to)`);
  if (error.code === 'EADDRNOTAVAIL') return new Error(`${host} is not an address of this machine`);
  return new Error(`${authority} cannot be listened on (${error.code ?? error.message})`);
}
