import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { eventually } from './eventually.js';
import { killProcess, parseEntry } from './gateway-processes.js';

const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));
/** Time limit for a start on a busy machine. */
const patienceMs = 120_000;

/** A gateway whose primary process is restarted whenever it ends, as by a service manager. */
interface RestartedGateway {
  /** Log entries of all primaries and their workers so far. */
  readonly entries: readonly Readonly<Record<string, unknown>>[];
  /** Pid of the current primary. */
  pid(): number;
  /** Pids of all workers so far. */
  workers(): readonly number[];
  /** Resolves when this many primaries have listened. @returns the entry of the last */
  listening(count: number): Promise<Readonly<Record<string, unknown>>>;
  /** Ends the primary like an operator, without a restart. @returns its exit code */
  stop(): Promise<number | null>;
}

/**
 * Starts the command line repeatedly.
 * @param args after `start`, including a port, so that each start uses the same
 * @param env in addition to that of this process
 */
export function startRestarted(
  t: Pick<Test, 'teardown'>,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): RestartedGateway {
  const entries: Record<string, unknown>[] = [];
  let primary: ChildProcess;
  let isOver = false;
  let onEnd: (code: number | null) => void = () => {};
  const ended = new Promise<number | null>((resolve) => {
    onEnd = resolve;
  });
  const start = (): void => {
    primary = spawn(process.execPath, [main, 'start', ...args], {
      env: { ...process.env, ...env, LOG_LEVEL: 'info' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (primary.stdout !== null)
      createInterface({ input: primary.stdout }).on('line', (line) => entries.push(parseEntry(line) ?? {}));
    // Not at the end of its output, which its workers share.
    primary.once('exit', (code) => (isOver ? onEnd(code) : start()));
  };
  start();

  const listenings = () => entries.filter(({ msg }) => msg === 'listening');
  const workers = (): number[] => listenings().flatMap(({ workers }) => workers as number[]);
  const stop = (): Promise<number | null> => {
    isOver = true;
    primary.kill('SIGTERM');
    return ended;
  };
  t.teardown(async () => {
    await stop();
    for (const pid of workers()) killProcess(pid);
  });
  return {
    entries,
    pid: () => primary.pid ?? 0,
    workers,
    listening: (count) =>
      eventually(() => listenings()[count - 1], {
        what: `start ${count}`,
        everyMs: 10,
        withinMs: patienceMs,
      }),
    stop,
  };
}
