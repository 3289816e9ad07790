import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** A core, several, or any, in the form of `taskset`. */
export type Pinning = number | readonly number[] | null;

interface ProcessPlan {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Core or cores to pin to, or null for any. */
  readonly core: Pinning;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** File for the output of the process; without it, `line` returns the output. */
  readonly outputFile?: string;
}

/** A running process in its own process group. */
export interface Process {
  readonly name: string;
  readonly pid: number;
  readonly exited: Promise<number | null>;
  readonly alive: () => boolean;
  /** The last lines of its stderr, for error messages. */
  readonly complaints: () => string;
  /** Returns the next line of its output. Rejects if it ends first. */
  readonly line: () => Promise<string>;
  /** Kills it and all processes that it has started. */
  readonly stop: () => Promise<void>;
}

const running = new Set<Process>();

/** Starts a process that is pinned to a core. `taskset` is replaced by the command, so the pid is the command's. */
export async function startProcess(plan: ProcessPlan): Promise<Process> {
  const cores = [plan.core ?? []].flat();
  const pinned = cores.length === 0 ? [] : ['taskset', '-c', cores.join(',')];
  const [command = plan.command, ...args] = [...pinned, plan.command, ...plan.args];
  const output = plan.outputFile === undefined ? null : openSync(plan.outputFile, 'a');
  const child = spawn(command, args, {
    detached: true,
    stdio: ['ignore', output ?? 'pipe', 'pipe'],
    env: plan.env ?? process.env,
    cwd: plan.cwd,
  });
  if (output !== null) closeSync(output);
  const complaints = collectComplaints(child);
  const lines = child.stdout ? createInterface({ input: child.stdout })[Symbol.asyncIterator]() : null;
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  await once(child, 'spawn');
  const pid = child.pid ?? 0;

  const self: Process = {
    name: plan.name,
    pid,
    exited,
    complaints,
    alive: () => child.exitCode === null && child.signalCode === null,
    async line() {
      const next = await lines?.next();
      if (next && !next.done) return next.value;
      throw new Error(`${plan.name} ended early: ${complaints() || 'it said nothing'}`);
    },
    async stop() {
      killGroup(pid);
      await exited;
      running.delete(self);
    },
  };
  running.add(self);
  exited.then(() => running.delete(self));
  return self;
}

function collectComplaints(child: ChildProcess): () => string {
  let head = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (head.length < 2000) head += text;
  });
  // In a bundle, the line of an error may be as long as the bundle.
  const isReadable = (line: string): boolean => line.length < 500 && line.trim().length > 1;
  return () => head.split('\n').filter(isReadable).slice(0, 6).join('\n    ');
}

/** Kills the group with its workers: the workers of a killed nginx master would live on. */
function killGroup(pid: number): void {
  for (const member of processTree(pid)) kill(member);
  kill(-pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

/** Kills everything that `startProcess` has started. Does not wait, since it is called at exit. */
export function stopEverything(): void {
  for (const one of running) killGroup(one.pid);
  running.clear();
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended since it was listed.
    return '';
  }
}

/** Returns the pids of the direct children of a process. */
export function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
}

/** Returns a process and all its descendants. */
export function processTree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)];
}

/** Returns the user and system time of processes so far, in milliseconds (proc_pid_stat(5), fields 14 and 15). */
export function cpuMs(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const stat = read(`/proc/${pid}/stat`);
    // The name in field 2 may contain spaces, so counting starts after its closing bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  }
  return ticks * 10;
}

/** Returns the time that the threads of a process have run so far, in microseconds. */
export function runningUs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`).map(Number);
  return threads.reduce((total, thread) => total + threadUs(pid, thread), 0);
}

/**
 * Returns the time that a thread of a process has waited for a core while ready to run, in microseconds (same file).
 */
export function waitedUs(pid: number, thread = pid): number {
  return Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[1]) / 1000;
}

/** Returns the time that a thread of a process has run so far, in microseconds (/proc/PID/task/TID/schedstat). */
export function threadUs(pid: number, thread: number): number {
  return Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0]) / 1000;
}

/**
 * Reads how long a core has been busy since boot, in milliseconds (proc_stat(5)). This includes interrupts: on
 * loopback the kernel's network work runs in the sender's time, and is also charged to the process.
 */
export function coreBusyMs(core: number): number {
  const line = read('/proc/stat')
    .split('\n')
    .find((text) => text.startsWith(`cpu${core} `));
  const fields = (line ?? '').split(' ').map(Number);
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return (user + nice + system + irq + softirq + steal) * 10;
}

/** Returns the number of open connections to one of a process's ports (proc_pid_net(5): state 01). */
export function heldConnections(pid: number, port: number): number {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const open = new Set<string>();
  for (const line of read(`/proc/${pid}/net/tcp`).split('\n').slice(1)) {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    if (state === '01' && local.endsWith(ending)) open.add(`socket:[${inode}]`);
  }
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => open.has(linkOf(`/proc/${pid}/fd/${fd}`))).length;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // It was closed after it was listed.
    return '';
  }
}

function statusField(pid: number, field: string): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(read(`/proc/${pid}/status`));
  return Number(found?.[1] ?? 0) / 1024;
}

/** Returns the resident memory of a process in MB; 0 if it has ended. */
export const residentMb = (pid: number): number => statusField(pid, 'VmRSS');

/** Returns the peak resident memory of a process, in MB. */
export const peakResidentMb = (pid: number): number => statusField(pid, 'VmHWM');

/** Returns the process that does the work: the child with the most memory, or the process itself without children. */
export function workerOf(pid: number): number {
  const children = childrenOf(pid).sort((a, b) => residentMb(b) - residentMb(a));
  return children[0] ?? pid;
}
