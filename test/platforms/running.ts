import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parentOf } from '../../src/supervisor/take-over.js';
import { eventually } from '../support/eventually.js';
import { parseEntry } from '../support/gateway-processes.js';

/** A gateway that was started by a command. */
export interface RunningCommand {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** Of the primary process. */
  readonly pid: number;
  /** Everything that was printed so far. */
  readonly lines: readonly string[];
  /** The programs that its processes run: of the primary, the workers and the simulator. */
  programs(): readonly string[];
  /** Resolves soon after the condition holds. Rejects when the command ends before that. */
  until(condition: () => boolean): Promise<unknown>;
  /** Asks the gateway to end. @returns the exit code of the command */
  stop(): Promise<number | null>;
}

/**
 * Runs a command that starts a gateway.
 * @param args one of them must ask for any free port
 * @returns when it listens
 * @throws Error with the output when it ends before that
 */
export async function startCommand(
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<RunningCommand> {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const killAll = (): void => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // They have ended.
    }
  };
  process.once('exit', killAll);
  const lines: string[] = [];
  let ended = false;
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => void lines.push(line));
  }
  const exited = once(child, 'close').then(([code]): number | null => {
    process.removeListener('exit', killAll);
    ended = true;
    return code;
  });
  const until = <Value>(condition: () => Value) => {
    const look = (): Value => {
      const hasEnded = ended;
      const value = condition();
      if (value || !hasEnded) return value;
      throw new Error(`${command} ${args.join(' ')} ended:\n${lines.join('\n')}`);
    };
    return eventually(look, { what: `${condition}`, everyMs: 5, withinMs: 300_000 });
  };
  const listening = () => lines.map(parseEntry).find((entry) => entry?.msg === 'listening');
  const { url, pid } = (await until(listening)) as unknown as { url: string; pid: number };
  return {
    url,
    pid,
    lines,
    until,
    programs: () => [pid, ...childrenOf(pid)].map((each) => readlinkSync(`/proc/${each}/exe`)),
    stop() {
      process.kill(pid, 'SIGTERM');
      return exited;
    },
  };
}

function childrenOf(pid: number): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((each) => parentOf(each) === pid);
}
