import { lookup } from 'node:dns/promises';
import { createServer } from 'node:net';
import { argumentsOf, listenersOn, parentOf } from './listeners.js';
import { claimPort, formatAddress, PortInUseError } from './port.js';

/** What a primary does that is told so: it stops to listen, gives up the operators' port, and drains. */
export const replacedSignal = 'SIGUSR2';

export interface Claim {
  readonly port: number;
  /** The gateway whose place is taken, or null when nobody listens on the port. */
  readonly predecessor: Predecessor | null;
}

/** A gateway that serves on the port until another one takes its place. */
export interface Predecessor {
  /** Of its primary process. */
  readonly pid: number;
  /** Tells it that the port is served from now on. @returns whether it was there to be told */
  dismiss(): boolean;
}

/**
 * Claims a port on which another gateway of the same user may still serve: workers of both share it until the other
 * one is dismissed.
 * @throws Error when somebody else has the port, or when another gateway is about to take it over
 */
export async function takePort(host: string, port: number): Promise<Claim> {
  try {
    return { port: await claimPort(host, port), predecessor: null };
  } catch (error) {
    if (!(error instanceof PortInUseError)) throw error;
  }
  const { address } = await lookup(host);
  const pid = gatewayOn(address, port);
  const place = formatAddress(host, port);
  if (pid === null) throw new Error(`${place} is in use, and not by one gateway of this user alone`);
  const release = await lockTakeOver(place);
  const dismiss = (): boolean => {
    release();
    // Its number may have gone to another process meanwhile.
    if (primariesOn(address, port).every((primary) => primary !== pid)) return false;
    process.kill(pid, replacedSignal);
    return true;
  };
  return { port, predecessor: { pid, dismiss } };
}

/** The primary of the gateway that listens on an address; null when it is not one gateway alone that does. */
function gatewayOn(address: string, port: number): number | null {
  const [primary, ...others] = primariesOn(address, port);
  return primary === undefined || others.length > 0 ? null : primary;
}

/** Primaries of the gateways whose workers listen on an address, except for this process. */
function primariesOn(address: string, port: number): readonly number[] {
  const workers = listenersOn(address, port).filter((pid) => argumentsOf(pid)[1]?.endsWith('/src/worker.js'));
  const primaries = new Set(workers.map(parentOf));
  primaries.delete(process.pid);
  return [...primaries].filter((pid) => argumentsOf(pid).includes('start'));
}

/**
 * Lets one process at a time take a place over: of two, each would take the other for the newer one. The name is in the
 * kernel's abstract namespace (unix(7)), so that it goes with its process.
 */
function lockTakeOver(place: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const lock = createServer();
    lock.once('error', () => reject(new Error(`another gateway is taking ${place} over at this moment`)));
    lock.listen(`\0model-gateway/${place}`, () => {
      lock.unref();
      resolve(() => lock.close());
    });
  });
}
