import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { errorCode } from '../errors.js';

/** Which process has written a record that outlives it. */
export interface ProcessMark {
  /** Where process numbers mean the same. */
  readonly host: string;
  /** Of the machine, and of the process, when each has started: numbers are given again. Empty where nobody tells. */
  readonly boot: string;
  readonly started: string;
  readonly process: number;
}

/** The mark of this process. */
export function thisProcess(): ProcessMark {
  return { host: processHost(), boot: bootId(), started: startOf(process.pid) ?? '', process: process.pid };
}

/** @returns whether a process runs no more, or null where that cannot be told from here */
export function hasEnded({ host, boot, started, process: pid }: ProcessMark): boolean | null {
  if (host !== processHost()) return null;
  if (boot !== bootId() || !isAlive(pid)) return true;
  return started !== '' && startOf(pid) !== started;
}

/** Where process numbers mean the same: containers may share the name of their host, and not its processes. */
export function processHost(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/** A process that has ended keeps its number until its parent asks, and that of an orphan may never (proc_pid_stat(5)). */
function isZombie(pid: number): boolean {
  const state = statOf(pid)[0];
  return state === 'Z' || state === 'X';
}

/** Clock ticks from the start of the machine to that of a process; null where nobody tells. */
function startOf(pid: number): string | null {
  return statOf(pid)[startTick] ?? null;
}

/** Field 22 of proc_pid_stat(5), of those from the third on. */
const startTick = 19;

/**
 * Fields of proc_pid_stat(5) from the state on, which is the third: the name before them may hold anything. None where there
 * is no such process.
 */
export function statOf(pid: number | undefined): readonly string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(') ') + 2).split(' ');
  } catch {
    return [];
  }
}

/** What Linux calls this start of the machine; empty where nobody says. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return '';
  }
}
