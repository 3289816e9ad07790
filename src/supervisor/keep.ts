import { type ChildProcess, fork } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import { type FaultPlace, guard } from '../errors.js';

export interface KeepOptions {
  /** Name of the process in the log. */
  readonly role: 'worker' | 'simulator';
  /** Path of the module to run. */
  readonly module: string;
  /** Defaults to none. */
  readonly arguments?: readonly string[];
  /** A process that has sent no message in this time hangs, and is killed. Default: 30 s. */
  readonly silentMs?: number;
  /** Called at each start. */
  environment(): NodeJS.ProcessEnv;
  onMessage(child: ChildProcess, message: unknown): void;
  /** Called when a process has ended, whether or not it is restarted. */
  onExit(child: ChildProcess): void;
  /** Called when the process has failed several times in a row without ever having served. It is not restarted. */
  onGivenUp(reason: string): void;
  /** Called on an internal error. There may be no process in this place, or one that the owner does not know of. */
  onFault(where: FaultPlace, fault: unknown): void;
  readonly log: Logger;
}

/** One place in which a process runs, and is restarted when it ends. */
export interface KeptProcess {
  /** Records that the process in this place serves. */
  markServing(child: ChildProcess): void;
  /** Records why a process is about to end. */
  markFailed(child: ChildProcess, reason: string): void;
  /** Starts a successor immediately, for a process that ends on its own. */
  replace(child: ChildProcess): void;
  /**
   * Starts another process in the place. The present one continues until its owner ends it. If it does not serve yet,
   * it is killed.
   */
  renew(): void;
  /** Why the last process did not serve. Null if it serves or still may. */
  readonly problem: string | null;
  /** All running processes of this place: the current one, and those that are ending. */
  running(): readonly ChildProcess[];
  /** Stops all further starts. */
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
    killSilent(child, options.silentMs ?? usualSilentMs, (why) => place.markFailed(child, why));
    child.on(
      'message',
      guarded((message: unknown) => options.onMessage(child, message)),
    );
    child.once(
      'exit',
      guarded((code: number | null, signal: string | null) => onEnd(child, signal ?? `code ${code}`)),
    );
    // A process that could not be spawned never exits. A message sent too late also ends here.
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
    if (child !== current || released) logDrainEnd(options, child, how);
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

  const place: KeptProcess = {
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
      if (child === current && !released) start();
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
  start();
  return place;
}

/** Kills a process that hangs before its first message. The owner cannot know of it, and would wait for it. */
function killSilent(child: ChildProcess, afterMs: number, onKilled: (reason: string) => void): void {
  const timer = setTimeout(() => {
    onKilled(`it said nothing within ${afterMs} ms`);
    child.kill('SIGKILL');
  }, afterMs).unref();
  for (const event of ['message', 'exit', 'error'] as const) child.once(event, () => clearTimeout(timer));
}

/** Logs how a process ended that was to drain, unless it exited in order. What this process has killed was logged then. */
function logDrainEnd({ role, log }: KeepOptions, child: ChildProcess, how: string): void {
  if (how === 'code 0' || child.killed) return;
  log.error({ [role]: child.pid, reason: `it ended with ${how}` }, `${role} ended while it drained`);
}

/** Sends a message to a process. No-op if it is disconnected. */
export function sendMessage(child: ChildProcess, message: object): void {
  if (child.connected) child.send(message, () => {});
}

/** Like `sendMessage`, but resolves once the message is written, or cannot be. */
export function sendMessageFully(child: ChildProcess, message: object): Promise<void> {
  return new Promise((resolve) => {
    if (child.connected) child.send(message, () => resolve());
    else resolve();
  });
}

/** Lets a process and this one run independently. Otherwise this one would stay alive as long as the other. */
export function unrefProcess(child: ChildProcess): void {
  if (child.connected) child.disconnect();
  child.unref();
}

const usualSilentMs = 30_000;
const firstMs = 100;
const longestMs = 10_000;
/** A process that served this long was healthy. Its end is an accident, not a failure to start. */
const healthyMs = 5000;

/** Failures in a row, without ever having served, after which the start is given up. */
const mostFirstFailures = 4;

interface Restart {
  /** Failures in a row, including this one. 0 after an accident. */
  readonly failures: number;
  readonly delayMs: number;
}

/**
 * Decides when a process that ended is restarted. Immediately after an accident, and after the first failure of a
 * process that had served. Otherwise after a wait that doubles, so that a process that cannot start, or crashes
 * repeatedly on what it serves, does not use up a core.
 * @param servedMs how long it had served, 0 if it never did
 * @param failures failures in a row before this one
 */
export function nextRestart(servedMs: number, failures: number): Restart {
  if (servedMs >= healthyMs) return { failures: 0, delayMs: 0 };
  if (servedMs > 0 && failures === 0) return { failures: 1, delayMs: 0 };
  return { failures: failures + 1, delayMs: Math.min(longestMs, firstMs * 2 ** failures) };
}
