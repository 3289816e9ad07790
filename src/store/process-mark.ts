import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, uptime } from 'node:os';
import { errorCode } from '../errors.js';

/** Identifies the process that has written a record which outlives it. */
export interface ProcessMark {
  /** Identifies the space of process ids. */
  readonly host: string;
  /** When the machine and the process were started, since process ids are reused. Empty if unknown. */
  readonly boot: string;
  readonly started: string;
  readonly process: number;
}

/** Returns the mark of this process. */
export function thisProcess(): ProcessMark {
  return { host: processHost(), boot: bootId(), started: startOf(process.pid) ?? '', process: process.pid };
}

/** Most that the clocks of hosts may differ. */
export const maxSkewMs = 60_000;

/**
 * Returns whether a process has ended; null if that cannot be determined from here. Machines may share a name, such as
 * copies of one image, so another boot is an earlier one of this machine only if it has written nothing since this one.
 * @param at Unix milliseconds: when the process last wrote its record
 */
export function hasEnded({ host, boot, started, process: pid }: ProcessMark, at: number): boolean | null {
  if (host !== processHost()) return null;
  if (boot !== bootId()) return at < bootedAt() - maxSkewMs ? true : null;
  if (!isAlive(pid)) return true;
  return started !== '' && startOf(pid) !== started;
}

/** Identifies a space of process ids among those of all machines. It changes with each boot. */
export function processSpace(): string {
  return `${processHost()} ${bootId()}`;
}

/** Unix milliseconds of the start of this machine. */
function bootedAt(): number {
  return Date.now() - uptime() * 1000;
}

/**
 * Names the space of process ids: containers may share the name of their host, but not its processes. Machines of the
 * same name are not told apart.
 */
function processHost(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/**
 * A process that has ended keeps its id until its parent reaps it. An orphan may never be reaped (proc_pid_stat(5)).
 */
function isZombie(pid: number): boolean {
  const state = statOf(pid)[0];
  return state === 'Z' || state === 'X';
}

/** Returns the clock ticks from the start of the machine to that of a process; null if unknown. */
function startOf(pid: number): string | null {
  return statOf(pid)[startTick] ?? null;
}

/** Index of field 22 of proc_pid_stat(5) in the result of `statOf`. */
const startTick = 19;

/**
 * Returns the fields of proc_pid_stat(5) from the third, the state, since the name before it may contain anything.
 * Empty if there is no such process.
 */
export function statOf(pid: number | undefined): readonly string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(') ') + 2).split(' ');
  } catch {
    return [];
  }
}

/** Returns Linux's id of this boot; empty if unknown. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return '';
  }
}
