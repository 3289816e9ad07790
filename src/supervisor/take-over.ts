import { lookup } from 'node:dns/promises';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { BlockList, createServer, isIPv6 } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { statOf } from '../store/process-mark.js';
import { formatAuthority } from '../wire/authority.js';
import { replacedSignal, workerMark } from './messages.js';
import { claimPort, PortInUseError } from './port.js';

/** TCP_LISTEN in `/proc/net/tcp`. */
const listenState = '0A';

/**
 * Finds the processes that listen on an address, or on all addresses.
 * @param address IPv4 or IPv6 address of an interface
 * @returns process ids, limited to processes that this user may inspect
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
 * Finds the processes that have a socket with this name in the abstract namespace (unix(7)).
 * @returns process ids, limited to processes that this user may inspect
 */
export function abstractHolders(name: string): readonly number[] {
  return holdersOf(
    abstractNames()
      .filter((each) => each.name === name)
      .map(({ inode }) => inode),
  );
}

interface AbstractName {
  readonly name: string;
  readonly inode: string;
}

/** Lists the sockets in the abstract namespace, of all users. */
export function abstractNames(): readonly AbstractName[] {
  // `address: references protocol flags type state inode path` (proc_net_unix(5)). `@` stands for a zero byte: the
  // first one, and those with which some versions of libuv pad the path.
  return readIfAny('/proc/net/unix')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , , , , , path]) => path?.startsWith('@'))
    .map(([, , , , , , inode = '', path = '']) => ({ name: path.slice(1).replace(/@+$/, ''), inode }));
}

function holdersOf(inodes: readonly string[]): readonly number[] {
  const sockets = new Set(inodes.map((inode) => `socket:[${inode}]`));
  if (sockets.size === 0) return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => descriptorsOf(pid).some((target) => sockets.has(target)))
    .map(Number);
}

/** Arguments of a process, starting with its program. Empty if it has exited or is another user's. */
export function argumentsOf(pid: number): readonly string[] {
  return readIfAny(`/proc/${pid}/cmdline`).split('\0').slice(0, -1);
}

/** Process id of a process's parent. 0 if the process has exited. */
export function parentOf(pid: number): number {
  const [, parent = 0] = statOf(pid);
  return Number(parent);
}

/** Id of a process in its own namespace (pid_namespaces(7)), which is the id it sees. 0 if it has exited. */
export function innerPidOf(pid: number): number {
  return Number(/^NSpid:.*\s(\d+)$/m.exec(readIfAny(`/proc/${pid}/status`))?.[1] ?? 0);
}

/** Whether a process belongs to this process's user. Needed because root can inspect all processes. */
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

/** Parses an address: words of 32 bits in the machine's byte order, which is little-endian here. */
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

/** Targets of a process's file descriptors. Empty if it has exited or is another user's. */
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
  /** The gateway to replace, or null if nothing listens on the port. */
  readonly predecessor: Predecessor | null;
}

/** A gateway that serves on the port until another one takes its place. */
export interface Predecessor {
  /** Id of its primary process. Null if that has died and only workers are left. */
  readonly pid: number | null;
  /** Workers whose primary has died. */
  readonly orphans: readonly number[];
  /**
   * Signals the primary if its workers listen, and all workers that listen without a primary, that the port is served by
   * another gateway from now on.
   * @returns the process ids signalled
   */
  dismiss(): readonly number[];
  /**
   * Kills those that were signalled and that still listen, or whose workers do.
   * @returns their process ids
   */
  killDeaf(): readonly number[];
}

/** A process that takes longer to stop listening, or to have its workers stop, hangs: see `heartbeat.ts`. */
const leastDeafMs = 30_000;
/** Time in which a killed process ends, and the system gives its workers another parent. */
const endMs = 1000;

interface EndOptions {
  readonly log: Logger;
  /** Returns false when this gateway is about to end. */
  isWanted(): boolean;
  /** How long a predecessor of an earlier version may listen on purpose, if it was told to stop before. */
  readonly unreadyMs: number;
  readonly deafMs?: number;
}

/**
 * Dismisses a predecessor. Looks again until nothing of it listens any more: a process that hangs is killed, and the
 * workers of a primary that ends before it has dismissed them are signalled in its place. Otherwise they would serve
 * beside the new gateway, with keys that are revoked since.
 */
export async function endPredecessor(
  { pid, dismiss, killDeaf }: Pick<Predecessor, 'pid' | 'dismiss' | 'killDeaf'>,
  { log, isWanted, unreadyMs, deafMs = leastDeafMs }: EndOptions,
): Promise<void> {
  let told = dismiss();
  log.info({ predecessor: pid, told }, 'replacing the gateway on this port');
  while (told.length > 0) {
    await wait(Math.max(deafMs, unreadyMs), undefined, { ref: false });
    if (!isWanted()) return;
    const killed = killDeaf();
    if (killed.length > 0) {
      log.error({ processes: killed }, 'processes of the replaced gateway hang: killing them');
      await wait(endMs, undefined, { ref: false });
    }
    told = dismiss();
  }
}

/**
 * Claims a port. Workers of a gateway that has died may still serve on it. If `takeOver` is set, so may another gateway
 * of the same user. They share the port with the workers of this gateway until they are dismissed.
 * @throws Error if another process has the port, or another gateway is about to take it over
 */
export async function claimPlace(host: string, port: number, takeOver: boolean): Promise<Claim> {
  try {
    return { port: await claimPort(host, port), predecessor: null };
  } catch (error) {
    if (!(error instanceof PortInUseError)) throw error;
    const { address } = await lookup(host);
    // Listeners that are looked up before the lock is held may not include its previous holder.
    const release = await lockTakeOver(formatAuthority(address, port));
    try {
      return { port, predecessor: findPredecessor({ address, port, release }, takeOver, error) };
    } catch (refused) {
      release();
      throw refused;
    }
  }
}

/** @param inUse thrown if there is no gateway to replace */
function findPredecessor(place: Place, takeOver: boolean, inUse: PortInUseError): Predecessor {
  const listening = whoListens(place);
  const { primaries, orphans, strangers } = listening;
  const isLeft = primaries.length === 0 && orphans.length > 0 && strangers.length === 0;
  if (!takeOver && !isLeft) throw new PortInUseError(`${inUse.message}; ${holdersText(listening)}`);
  const [pid = null, ...others] = primaries;
  if ((pid === null && !isLeft) || others.length > 0) {
    const authority = formatAuthority(place.address, place.port);
    throw new Error(
      `${authority} is in use, and not by one gateway of this user alone; ${holdersText(listening)}`,
    );
  }
  return { pid, orphans, ...createDismissal(place, pid) };
}

/** Says who has a place, by process ids and names of programs. Arguments may contain secrets. */
function holdersText({ primaries, orphans, strangers }: Listening): string {
  const named = [
    ...primaries.map((pid) => `gateway ${pid}`),
    ...orphans.map((pid) => `worker ${pid} of a gateway that has died`),
    ...strangers.map((pid) => `process ${pid} (${programName(pid)})`),
  ];
  if (named.length > 0) return `it is held by ${named.join(', ')}`;
  return 'it is held by a process of another user (as root: ss -ltnp)';
}

/** Returns the name of a process's program, which a process may set to any bytes, in plain characters. */
function programName(pid: number): string {
  return readIfAny(`/proc/${pid}/comm`)
    .trim()
    .replace(/[^ -~]/g, '?');
}

interface Place {
  /** Address of an interface. */
  readonly address: string;
  readonly port: number;
  /** Lets other gateways take over the place. */
  readonly release: () => void;
}

/**
 * Creates the functions that end a predecessor. Process ids may be reused, so the listeners are looked up again before
 * each signal.
 */
function createDismissal(place: Place, pid: number | null): Pick<Predecessor, 'dismiss' | 'killDeaf'> {
  let told: readonly number[] = [];
  const listening = (): readonly number[] => {
    const { primaries, orphans } = whoListens(place);
    return [...primaries.filter((primary) => primary === pid), ...orphans];
  };
  return {
    dismiss() {
      place.release();
      told = listening().filter((each) => signal(each, replacedSignal));
      return told;
    },
    killDeaf: () => listening().filter((each) => told.includes(each) && signal(each, 'SIGKILL')),
  };
}

/** @returns whether the process exists */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** The processes that listen on an address, except for the workers of this process. */
interface Listening {
  /** Primaries of gateways whose workers listen. */
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
    // The kernel assigns an orphaned process to another parent.
    else if (innerPidOf(parent) === primary) primaries.add(parent);
    else orphans.push(pid);
  }
  primaries.delete(process.pid);
  return { primaries: [...primaries], orphans, strangers };
}

/** Process id of a worker's primary, in the primary's own namespace. Null if the process is not a worker. */
function namedPrimaryOf(pid: number): number | null {
  const [, , mark, primary] = argumentsOf(pid);
  return mark === workerMark ? Number(primary) : null;
}

/**
 * Lets one process at a time take over a place. Otherwise each of two would treat the other as the newer one. The lock
 * is a name in the kernel's abstract namespace (unix(7)), so it ends with its process. Any user can bind that name
 * there, so a holder of another user does not block the lock.
 */
function lockTakeOver(authority: string): Promise<() => void> {
  const name = `model-gateway/${authority}`;
  return new Promise((resolve, reject) => {
    const lock = createServer((socket) => socket.destroy());
    lock.once('error', () => {
      const others = abstractHolders(name).filter(isOwn);
      if (others.length > 0)
        reject(new Error(`another gateway is taking ${authority} over at this moment: ${others.join(', ')}`));
      else resolve(() => {});
    });
    lock.listen(`\0${name}`, () => {
      lock.unref();
      resolve(() => lock.close());
    });
  });
}
