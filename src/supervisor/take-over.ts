import { lookup } from 'node:dns/promises';
import { createServer } from 'node:net';
import { formatAuthority } from '../wire/authority.js';
import { argumentsOf, listenersOn, parentOf, programOf } from './listeners.js';
import { replacedSignal } from './messages.js';
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
    const { primaries, orphans, strangers } = whoListens(address, port);
    const isLeft = primaries.length === 0 && orphans.length > 0 && strangers.length === 0;
    if (!takeOver && !isLeft) throw error;
    const authority = formatAuthority(host, port);
    const [pid = null, ...others] = primaries;
    if ((pid === null && !isLeft) || others.length > 0)
      throw new Error(`${authority} is in use, and not by one gateway of this user alone`);
    const release = await lockTakeOver(authority);
    return { port, predecessor: { pid, orphans, ...createDismissal({ address, port, pid, release }) } };
  }
}

interface Place {
  /** Of an interface. */
  readonly address: string;
  readonly port: number;
  readonly pid: number | null;
  /** Lets others take the place over. */
  readonly release: () => void;
}

/** Process ids may go to other processes: whoever is signalled is found anew. */
function createDismissal({ address, port, pid, release }: Place): Pick<Predecessor, 'dismiss' | 'killDeaf'> {
  let told: readonly number[] = [];
  return {
    dismiss() {
      release();
      const { primaries, orphans } = whoListens(address, port);
      told = [...primaries.filter((primary) => primary === pid), ...orphans].filter((each) =>
        signal(each, replacedSignal),
      );
      return told;
    },
    killDeaf() {
      const { orphans } = whoListens(address, port);
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

function whoListens(address: string, port: number): Listening {
  const primaries = new Set<number>();
  const orphans: number[] = [];
  const strangers: number[] = [];
  for (const pid of listenersOn(address, port)) {
    const parent = parentOf(pid);
    if (!argumentsOf(pid)[1]?.endsWith('/src/worker.js')) strangers.push(pid);
    else if (isPrimaryOf(parent, pid)) primaries.add(parent);
    else orphans.push(pid);
  }
  primaries.delete(process.pid);
  return { primaries: [...primaries], orphans, strangers };
}

/** The system gives a process whose parent has died to another one: to the first of all, or to one that asks for that. */
function isPrimaryOf(parent: number, worker: number): boolean {
  return argumentsOf(parent).includes('start') && programOf(parent) === programOf(worker);
}

/**
 * Lets one process at a time take a place over: of two, each would take the other for the newer one. The name is in the
 * kernel's abstract namespace (unix(7)), so that it goes with its process.
 */
function lockTakeOver(authority: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const lock = createServer();
    lock.once('error', () => reject(new Error(`another gateway is taking ${authority} over at this moment`)));
    lock.listen(`\0model-gateway/${authority}`, () => {
      lock.unref();
      resolve(() => lock.close());
    });
  });
}
