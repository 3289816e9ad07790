import { lookup } from 'node:dns/promises';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { BlockList, createServer, isIPv6 } from 'node:net';
import { formatAuthority } from '../wire/authority.js';
import { claimPort, PortInUseError } from './port.js';

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
  const authority = formatAuthority(host, port);
  if (pid === null) throw new Error(`${authority} is in use, and not by one gateway of this user alone`);
  const release = await lockTakeOver(authority);
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
  const sockets = new Set(
    ['/proc/net/tcp', '/proc/net/tcp6']
      .flatMap(listeningSockets)
      .filter((socket) => socket.port === port && isSame(socket.address))
      .map(({ inode }) => `socket:[${inode}]`),
  );
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
  // `pid (name) state parent …`, where the name may hold anything (proc_pid_stat(5)).
  const stat = readIfAny(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? 0);
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
