import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import { statOf } from '../store/process-mark.js';

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
