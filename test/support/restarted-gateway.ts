import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { eventually } from './eventually.js';
import { killProcess, parseEntry } from './gateway-processes.js';

const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));
/** Ready to go on after a start on a machine that others keep busy. */
const patienceMs = 120_000;

/** A gateway whose primary process is started again whenever it ends, as a service manager does. */
interface RestartedGateway {
  /** Log entries of all primaries and their workers so far. */
  readonly entries: readonly Readonly<Record<string, unknown>>[];
  /** Of the primary at this moment. */
  pid(): number;
  /** Process ids of all workers that ever served. */
  workers(): readonly number[];
  /** Resolves when so many primaries have come to listen. @returns the entry of the last */
  listening(count: number): Promise<Readonly<Record<string, unknown>>>;
  /** Ends the primary as an operator does, and starts none in its place. @returns its exit code */
  stop(): Promise<number | null>;
}

/**
 * Starts the command line again and again.
 * @param args after `start`; a port has to be among them, so that each start takes the same
 * @param env beside that of this process
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
    // Not with the end of its output, which its workers share.
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
