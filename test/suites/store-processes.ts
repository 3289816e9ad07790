import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { eventually } from '../support/eventually.js';
import type { StoreOrder } from './store-process.js';

const script = fileURLToPath(new URL('./store-process.js', import.meta.url));

/** A process that works on a store. */
export interface StoreProcess {
  /** What it has printed so far. */
  readonly told: readonly string[];
  /** What it has written to standard error. */
  errors(): string;
  readonly exited: Promise<number | null>;
  untilTold(count: number): Promise<void>;
  /** Lets it continue. */
  proceed(): void;
  kill(): void;
  readonly pid: number;
}

/** Starts a process that does this work, and then ends. */
export function startStoreProcess(order: StoreOrder): StoreProcess {
  const child: ChildProcess = fork(script, [JSON.stringify(order)], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  });
  const told: string[] = [];
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
    process.stderr.write(text);
  });
  child.on('message', (line) => told.push(String(line)));
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  // Its last messages may arrive after its end.
  const exited = Promise.all([once(child, 'close'), once(child, 'disconnect')]).then(
    ([[code]]): number | null => {
      process.removeListener('exit', killAtExit);
      return code;
    },
  );
  return {
    told,
    errors: () => errors,
    exited,
    async untilTold(count) {
      const hasTold = (): boolean => {
        if (told.length < count && child.exitCode !== null)
          throw new Error(`the process ended with ${child.exitCode}`);
        return told.length >= count;
      };
      await eventually(hasTold, { what: `${count} messages of the process` });
    },
    proceed: () => void child.send('proceed'),
    kill: () => void child.kill('SIGKILL'),
    pid: child.pid ?? 0,
  };
}

/**
 * Starts a process that takes the lock of the writers of conversation records in a folder, like a slow disk.
 * It ends with the test, or earlier if it is killed.
 * @param path of an embedded store whose files exist
 * @returns when the lock is taken
 */
export async function holdConversations(t: Pick<Test, 'teardown'>, path: string): Promise<StoreProcess> {
  const settings = { kind: 'embedded', path, taskDays: 7 } as const;
  const holder = startStoreProcess({ settings, does: 'hold', path, environment: 'owned' });
  t.teardown(() => holder.kill());
  await holder.untilTold(1);
  return holder;
}
