import { lookup } from 'node:dns/promises';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { BlockList, createServer, isIPv6 } from 'node:net';
import { statOf } from '../store/process-mark.js';
import { formatAuthority } from '../wire/authority.js';
import { replacedSignal, workerMark } from './messages.js';
import { claimPort, PortInUseError } from './port.js';

/** TCP_LISTEN, as `/proc/net/tcp` writes it. */
const listenState = '0A';

/**
 * Finds the processes that listen on an address: on the address itself, or on all of them.
 * @param address of an interface, IPv4 or IPv6
 * @returns process ids, as far as this user may look at the processes
 */
export function listenersOn(address: string, port: number): readonly number[] {
  const own = new BlockList();
  own.addAddress(address, familyOf(address));
  const isSame = (other: string): boolean =>
    isWildcard(address) || isWildcard(other) || own.check(other, familyOf(other));
  const sockets = ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap(listeningSockets)
    .filter((socket) => socket.port === port && isSame(socket.address));
  return holdersOf(sockets.map(({ inode }) => inode));
}

/**
 * Finds the processes that have a socket of a name in the abstract namespace (unix(7)).
 * @returns process ids, as far as this user may look at the processes
 */
export function abstractHolders(name: string): readonly number[] {
  // `address: references protocol flags type state inode path` (proc_net_unix(5)), with `@` for bytes that are zero: the
  // first one, and those with which some versions of libuv fill the path up.
  const lines = readIfAny('/proc/net/unix')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  return holdersOf(
    lines.filter((parts) => parts[7]?.replace(/@+$/, '') === `@${name}`).map((parts) => parts[6] ?? ''),
  );
}

function holdersOf(inodes: readonly string[]): readonly number[] {
  const sockets = new Set(inodes.map((inode) => `socket:[${inode}]`));
  if (sockets.size === 0) return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => descriptorsOf(pid).some((target) => sockets.has(target)))
    .map(Number);
}

/** The arguments of a process, its program first; none when it is gone or another user's. */
export function argumentsOf(pid: number): readonly string[] {
  return readIfAny(`/proc/${pid}/cmdline`).split('\0').slice(0, -1);
}

/** The process that started another one; 0 when that is gone. */
export function parentOf(pid: number): number {
  const [, parent = 0] = statOf(pid);
  return Number(parent);
}

/** The id of a process in its own namespace, which it knows itself by (pid_namespaces(7)); 0 when it is gone. */
export function innerPidOf(pid: number): number {
  return Number(/^NSpid:.*\s(\d+)$/m.exec(readIfAny(`/proc/${pid}/status`))?.[1] ?? 0);
}

/** Whether a process is of the user of this one: who is root sees those of all. */
export function isOwn(pid: number): boolean {
  try {
    return statSync(`/proc/${pid}`).uid === process.geteuid?.();
  } catch {
    return false;
  }
}

interface ListeningSocket {
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

function listeningSockets(table: string): ListeningSocket[] {
  return readIfAny(table)
    .split('\n')
    .slice(1)
    .flatMap((line): ListeningSocket[] => {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      const [address = '', port = ''] = local.split(':');
      if (state !== listenState) return [];
      return [{ address: addressIn(address), port: Number.parseInt(port, 16), inode }];
    });
}

/** Addresses are written as words of 32 bits in the byte order of the machine, which is little-endian here. */
function addressIn(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => (word.match(/../g) ?? []).reverse());
  if (bytes.length === 4) return bytes.map((byte) => Number.parseInt(byte, 16)).join('.');
  return (bytes.join('').match(/.{4}/g) ?? []).join(':');
}

function isWildcard(address: string): boolean {
  return /^[0:.]+$/.test(address);
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

/** What the open files of a process are; none when it is gone or another user's. */
function descriptorsOf(pid: string): string[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).flatMap((name) => linkIfAny(`${folder}/${name}`));
  } catch {
    return [];
  }
}

function linkIfAny(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    return [];
  }
}

function readIfAny(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

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
