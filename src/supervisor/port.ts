import { lookup } from 'node:dns/promises';
import { connect, createServer } from 'node:net';
import { formatAuthority } from '../wire/authority.js';

/**
 * Range of ports from which a free one is picked. Linux assigns those above to clients, so one may be taken at any
 * moment.
 */
const lowestFree = 10_240;
const highestFree = 32_767;
const mostPicks = 100;

/** Another process listens on the port. */
export class PortInUseError extends Error {}

/** The host is no address of this machine, or no name of one. */
export class UnusableHostError extends Error {}

/** Node's socket errors. */
export interface SocketError extends Error {
  readonly code?: string;
  readonly syscall?: string;
}

/**
 * Ensures that nothing listens on a port yet. Workers share their port through SO_REUSEPORT, so a second gateway could
 * bind it without an error and would receive half of the connections.
 * @param port 0 picks a free port, which no other gateway picks while this process lives. The workers cannot pick one:
 * uWS sets SO_REUSEPORT only for a given port.
 * @returns the port
 * @throws PortInUseError if another process listens on it
 * @throws Error that says in plain words why the port is otherwise not available
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
 * Reserves a picked port. Two processes that pick concurrently may both find it free, as nothing listens on it until
 * their workers do. The reservation is a name in the kernel's abstract namespace (unix(7)), which ends with its
 * process. Other systems have no such names.
 * @returns false if another process, or this one, has already picked the port
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

/** Appended to the error if another process has the port. */
const advice = 'choose another --port, or --take-over from a gateway';

/**
 * Addresses to which no TCP connection is possible. Systems refuse to open one there before anything is sent (RFC 9293,
 * MUST-46).
 */
const multicast = { v4: '224.0.0.1', v6: 'ff02::1' } as const;

/**
 * Binds a socket to the port without listening. A listening socket, however briefly open, would accept and reset
 * connections of clients that try until the gateway is up.
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
 * Describes in plain words why a port is not available.
 * @param advice what to do if another process has it
 */
export function portError(error: SocketError, host: string, port: number, advice: string): Error {
  const authority = formatAuthority(host, port);
  if (error.code === 'EADDRINUSE')
    return new PortInUseError(`${authority} is in use by another process; ${advice}`);
  if (error.code === 'EACCES')
    return new Error(`${authority} may not be used by this user (ports below 1024 need the right to)`);
  if (error.code === 'EADDRNOTAVAIL')
    return new UnusableHostError(`${host} is not an address of this machine`);
  return new UnusableHostError(`${authority} cannot be listened on (${error.code ?? error.message})`);
}
