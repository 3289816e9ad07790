import { type ChildProcess, fork } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import { type FaultPlace, guard } from '../errors.js';

export interface KeepOptions {
  /** What the process is, for the log. */
  readonly role: 'worker' | 'simulator';
  /** Path of the module to run. */
  readonly module: string;
  /** None unless given. */
  readonly arguments?: readonly string[];
  /** Asked at each start. */
  environment(): NodeJS.ProcessEnv;
  onMessage(child: ChildProcess, message: unknown): void;
  /** A process ended, whether another is started for it or not. */
  onExit(child: ChildProcess): void;
  /** It failed several times in a row without ever having served: nothing more is tried. */
  onGivenUp(reason: string): void;
  /** A mistake of ours: it may be that no process runs in this place, or that nobody has heard of one. */
  onFault(where: FaultPlace, fault: unknown): void;
  readonly log: Logger;
}

/** One place in which a process runs, and is started again when it ends. */
export interface KeptProcess {
  /** Notes that the process in this place serves now. */
  markServing(child: ChildProcess): void;
  /** Notes why a process is about to end. */
  markFailed(child: ChildProcess, reason: string): void;
  /** The process leaves of its own accord: another takes its place at once. */
  replace(child: ChildProcess): void;
  /**
   * Starts another process for the place; the one in it goes on, and ends when its owner says so. One that does not
   * serve yet ends at once.
   */
  renew(): void;
  /** Why the last process did not serve; null when it does, or may yet. */
  readonly problem: string | null;
  /** Every process of this place that still runs: the one in it, and those that are leaving. */
  running(): readonly ChildProcess[];
  /** From here on nothing is started any more. */
  release(): void;
}

/** Starts a process, and keeps one running in its place until `release`. */
export function keepRunning(options: KeepOptions): KeptProcess {
  const running = new Set<ChildProcess>();
  let current: ChildProcess | null = null;
  let servingSince = 0;
  let everServed = false;
  let failures = 0;
  let reason: string | null = null;
  let problem: string | null = null;
  let released = false;
  let timer: NodeJS.Timeout | null = null;

  const guarded = <Arguments extends unknown[]>(callback: (...args: Arguments) => void) =>
    guard('process', options, callback);

  const start = (): void => {
    timer = null;
    servingSince = 0;
    reason = null;
    const child = fork(options.module, options.arguments ?? [], { execArgv: [], env: options.environment() });
    current = child;
    running.add(child);
    child.on(
      'message',
      guarded((message: unknown) => options.onMessage(child, message)),
    );
    child.once(
      'exit',
      guarded((code: number | null, signal: string | null) => onEnd(child, signal ?? `code ${code}`)),
    );
    // A process that could not be made never exits; a message that came too late also lands here.
    child.on(
      'error',
      guarded((error: Error) => {
        if (child.pid === undefined) onEnd(child, error.message);
      }),
    );
  };

  const onEnd = (child: ChildProcess, how: string): void => {
    if (!running.delete(child)) return;
    const said = reason ?? `it ended with ${how}`;
    if (child === current && servingSince === 0) problem = said;
    options.onExit(child);
    if (child !== current) return;
    current = null;
    if (released) return;
    const restart = nextRestart(servingSince === 0 ? 0 : performance.now() - servingSince, failures);
    failures = restart.failures;
    if (!everServed && failures >= mostFirstFailures) {
      options.onGivenUp(`the ${options.role} does not start: ${said}`);
      return;
    }
    const fields = { [options.role]: child.pid, reason: said, restartInMs: restart.delayMs };
    options.log.error(fields, `${options.role} ended`);
    timer = setTimeout(guarded(start), restart.delayMs);
  };

  start();
  return {
    markServing(child) {
      if (child !== current) return;
      servingSince = performance.now();
      everServed = true;
      problem = null;
    },
    markFailed(child, why) {
      if (child === current) reason = why;
    },
    replace(child) {
      if (child !== current || released) return;
      start();
    },
    renew() {
      if (released) return;
      if (timer !== null) clearTimeout(timer);
      const [before, served] = [current, servingSince > 0];
      failures = 0;
      problem = null;
      start();
      if (!served) before?.kill('SIGKILL');
    },
    get problem() {
      return problem;
    },
    running: () => [...running],
    release() {
      released = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** Sends a message to a process; one that is gone, or going, is not told. */
export function tell(child: ChildProcess, message: object): void {
  if (child.connected) child.send(message, () => {});
}

/** The same. Resolves once the message has left, or cannot. */
export function told(child: ChildProcess, message: object): Promise<void> {
  return new Promise((resolve) => {
    if (child.connected) child.send(message, () => resolve());
    else resolve();
  });
}

/** Lets a process go on without this one, which else would live for as long as it does. */
export function disown(child: ChildProcess): void {
  if (child.connected) child.disconnect();
  child.unref();
}

const firstMs = 100;
const longestMs = 10_000;
/** A process that served this long was well: its end is an accident, not a failure to start. */
const healthyMs = 5000;

/** How many times in a row a process may fail before it ever served, until the start is given up. */
const mostFirstFailures = 4;

interface Restart {
  /** Failures in a row, this one included; 0 after an accident. */
  readonly failures: number;
  readonly delayMs: number;
}

/**
 * Decides when a process that ended is started again: at once after an accident, and for the first time after any end of
 * one that had served, else after a wait that doubles, so that a process that cannot start, or that what it serves ends
 * again and again, does not eat a core.
 * @param servedMs how long it had served; 0 when it never did
 * @param failures in a row before this one
 */
export function nextRestart(servedMs: number, failures: number): Restart {
  if (servedMs >= healthyMs) return { failures: 0, delayMs: 0 };
  if (servedMs > 0 && failures === 0) return { failures: 1, delayMs: 0 };
  return { failures: failures + 1, delayMs: Math.min(longestMs, firstMs * 2 ** failures) };
}
