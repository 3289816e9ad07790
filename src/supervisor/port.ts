import { createServer } from 'node:net';
import { formatAuthority } from '../wire/authority.js';

/** Ports from which a free one is picked: Linux gives those above to clients, one of which may be taken at any moment. */
const lowestFree = 10_240;
const highestFree = 32_767;
const mostPicks = 100;

/** Somebody listens on the port. */
export class PortInUseError extends Error {}

/**
 * Makes sure that nobody listens on a port yet. Workers share theirs through SO_REUSEPORT, so a second gateway would
 * be let in as well, without a word, and take half of the connections.
 * @param port 0 picks a free one. The workers cannot do it: uWS sets SO_REUSEPORT only for a port that is given.
 * @returns the port
 * @throws PortInUseError when somebody does
 * @throws Error that says in plain words why the port cannot be had otherwise
 */
export async function claimPort(host: string, port: number): Promise<number> {
  if (port !== 0) return probePort(host, port);
  for (let picks = 0; picks < mostPicks; picks++) {
    const picked = lowestFree + Math.floor(Math.random() * (highestFree - lowestFree + 1));
    try {
      return await probePort(host, picked);
    } catch (error) {
      if (!(error instanceof PortInUseError)) break;
    }
  }
  return probePort(host, 0);
}

function probePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      const problem = portProblem(error, host, port);
      reject(error.code === 'EADDRINUSE' ? new PortInUseError(problem) : new Error(problem));
    });
    probe.listen({ host, port, exclusive: true }, () => {
      const address = probe.address();
      const claimed = typeof address === 'object' && address !== null ? address.port : port;
      probe.close(() => resolve(claimed));
    });
  });
}

function portProblem(error: NodeJS.ErrnoException, host: string, port: number): string {
  const authority = formatAuthority(host, port);
  if (error.code === 'EADDRINUSE')
    return `${authority} is in use by another process; choose another --port, or --take-over from a gateway`;
  if (error.code === 'EACCES')
    return `${authority} may not be used by this user (ports below 1024 need the right to)`;
  if (error.code === 'EADDRNOTAVAIL') return `${host} is not an address of this machine`;
  return `${authority} cannot be listened on (${error.code ?? error.message})`;
}
