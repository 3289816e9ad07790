import { lookup } from 'node:dns/promises';
import { createServer } from 'node:net';
import { formatAuthority } from '../wire/authority.js';
import { abstractHolders, argumentsOf, innerPidOf, isOwn, listenersOn, parentOf } from './listeners.js';
import { replacedSignal, workerMark } from './messages.js';
import { claimPort, PortInUseError } from './port.js';

export interface Claim {
  readonly port: number;
  /** The gateway whose place is taken, or null when nobody listens on the port. */
  readonly predecessor: Predecessor | null;
}

/** A gateway that serves on the port until another one takes its place. */
export interface Predecessor {
  /** Of its primary process; null when that has died, and only workers are left. */
  readonly pid: number | null;
  /** Workers whose primary has died. */
  readonly orphans: readonly number[];
  /** Tells it that the port is served from now on. @returns to whom it was told */
  dismiss(): readonly number[];
  /** Kills the orphans that listen although they were told to leave. @returns their process ids */
  killDeaf(): readonly number[];
}

/**
 * Claims a port. Workers of a gateway that has died may still serve on it, and, where it is to be taken over, another
 * gateway of the same user: they share it with the workers of this one until they are dismissed.
 * @throws Error when somebody else has the port, or when another gateway is about to take it over
 */
export async function claimPlace(host: string, port: number, takeOver: boolean): Promise<Claim> {
  try {
    return { port: await claimPort(host, port), predecessor: null };
  } catch (error) {
    if (!(error instanceof PortInUseError)) throw error;
    const { address } = await lookup(host);
    // Who looked before it had the lock would know nothing of whoever had it until then.
    const release = await lockTakeOver(formatAuthority(address, port));
    try {
      return { port, predecessor: findPredecessor({ address, port, release }, takeOver, error) };
    } catch (refused) {
      release();
      throw refused;
    }
  }
}

/** @param inUse what is thrown when nobody is to be replaced */
function findPredecessor(place: Place, takeOver: boolean, inUse: PortInUseError): Predecessor {
  const { primaries, orphans, strangers } = whoListens(place);
  const isLeft = primaries.length === 0 && orphans.length > 0 && strangers.length === 0;
  if (!takeOver && !isLeft) throw inUse;
  const [pid = null, ...others] = primaries;
  if ((pid === null && !isLeft) || others.length > 0) {
    const authority = formatAuthority(place.address, place.port);
    throw new Error(`${authority} is in use, and not by one gateway of this user alone`);
  }
  return { pid, orphans, ...createDismissal(place, pid) };
}

interface Place {
  /** Of an interface. */
  readonly address: string;
  readonly port: number;
  /** Lets others take the place over. */
  readonly release: () => void;
}

/** Process ids may go to other processes: whoever is signalled is found anew. */
function createDismissal(place: Place, pid: number | null): Pick<Predecessor, 'dismiss' | 'killDeaf'> {
  let told: readonly number[] = [];
  return {
    dismiss() {
      place.release();
      const { primaries, orphans } = whoListens(place);
      told = [...primaries.filter((primary) => primary === pid), ...orphans].filter((each) =>
        signal(each, replacedSignal),
      );
      return told;
    },
    killDeaf() {
      const { orphans } = whoListens(place);
      return orphans.filter((orphan) => told.includes(orphan) && signal(orphan, 'SIGKILL'));
    },
  };
}

/** @returns whether the process was there */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** Who listens on an address, except for the workers of this process. */
interface Listening {
  /** Primaries of gateways whose workers do. */
  readonly primaries: readonly number[];
  /** Workers whose primary has died. */
  readonly orphans: readonly number[];
  readonly strangers: readonly number[];
}

function whoListens({ address, port }: Pick<Place, 'address' | 'port'>): Listening {
  const primaries = new Set<number>();
  const orphans: number[] = [];
  const strangers: number[] = [];
  for (const pid of listenersOn(address, port)) {
    const parent = parentOf(pid);
    const primary = namedPrimaryOf(pid);
    if (primary === null || !isOwn(pid)) strangers.push(pid);
    // The system gives a process whose parent has died to another one.
    else if (innerPidOf(parent) === primary) primaries.add(parent);
    else orphans.push(pid);
  }
  primaries.delete(process.pid);
  return { primaries: [...primaries], orphans, strangers };
}

/** The process id by which the primary of a worker knows itself; null for what is no worker. */
function namedPrimaryOf(pid: number): number | null {
  const [, , mark, primary] = argumentsOf(pid);
  return mark === workerMark ? Number(primary) : null;
}

/**
 * Lets one process at a time take a place over: of two, each would take the other for the newer one. The name is in the
 * kernel's abstract namespace (unix(7)), so that it goes with its process. Any user may have the name there: who is not
 * ours keeps nobody out.
 */
function lockTakeOver(authority: string): Promise<() => void> {
  const name = `model-gateway/${authority}`;
  return new Promise((resolve, reject) => {
    const lock = createServer((socket) => socket.destroy());
    lock.once('error', () => {
      if (abstractHolders(name).some(isOwn))
        reject(new Error(`another gateway is taking ${authority} over at this moment`));
      else resolve(() => {});
    });
    lock.listen(`\0${name}`, () => {
      lock.unref();
      resolve(() => lock.close());
    });
  });
}
