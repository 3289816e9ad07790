import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import type { GatewayReport } from '../../src/supervisor/messages.js';
import { eventually } from './eventually.js';

/** A gateway that is started by its command line. */
export interface ProcessOptions {
  /** Number of worker processes; null for the config's. */
  readonly workers: number | null;
  /** The config file, as a JSON value or text. Without it, the gateway runs its demo. */
  readonly file?: unknown;
  /** Further arguments after `start`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface GatewayProcesses {
  /** `http://127.0.0.1:PORT`. */
  readonly baseUrl: string;
  readonly port: number;
  readonly pid: number;
  /** The config file, which can be rewritten before a reload; null for the demo. */
  readonly configPath: string | null;
  /** Lines of standard output and standard error so far. */
  readonly logs: readonly string[];
  /** Process ids of the workers that are serving. */
  workerPids(): readonly number[];
  /** Resolves soon after the condition holds. Rejects if the process ends before that. */
  until(condition: () => boolean): Promise<unknown>;
  /** Resolves with the first matching log entry, past or future. */
  untilLogged(fits: (entry: Readonly<Record<string, unknown>>) => boolean): Promise<Record<string, unknown>>;
  /** The operators' sign-in address, once it is known. */
  adminUrl(): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  readonly exited: Promise<Exit>;
  /** Sends SIGTERM, and resolves when the process has ended. */
  stop(): Promise<Exit>;
  /** Kills all of its processes with SIGKILL. Resolves when they have ended. */
  end(): Promise<Exit>;
}

/** Gateways that were started and still run. */
const running = new Set<GatewayProcesses>();

const lookMs = 5;
/** Some tests wait for what takes minutes under load. */
const patienceMs = 300_000;
const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** The caller's own settings must not reach the gateway under test. */
const cleared = { GATEWAY_CONFIG: '', HOST: '', PORT: '', WORKERS: '' };

/**
 * Starts the gateway's command line. It is stopped with the test.
 * @returns when every worker listens
 * @throws Error with the output if it ends before that
 */
export async function startProcesses(
  t: Pick<Test, 'teardown'>,
  { workers, file, args: more = [], env = {} }: ProcessOptions,
): Promise<GatewayProcesses> {
  const folder = file === undefined ? null : mkdtempSync(join(tmpdir(), 'gateway-'));
  const configPath = folder === null ? null : join(folder, 'config.json');
  if (configPath !== null) writeConfig(configPath, file);
  const config = configPath === null ? [] : ['--config', configPath];
  const count = workers === null ? [] : ['--workers', `${workers}`];
  const args = ['start', '--host', '127.0.0.1', '--port', '0', ...count, ...config];
  const child = fork(main, [...args, ...more], {
    execArgv: [],
    env: { ...process.env, ...cleared, LOG_LEVEL: 'info', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let exit: Exit | null = null;
  const killAll = (): void => {
    // Workers and a simulator outlive their primary. Once they have ended, their pids may be those of others.
    const children = exit === null ? new Set([...childrenOf(child.pid ?? 0), ...workerPids()]) : [];
    // The primary first, since it would replace its workers.
    child.kill('SIGKILL');
    for (const pid of children) killProcess(pid);
  };
  process.once('exit', killAll);

  const logs = linesOf(child);
  let state: GatewayReport | null = null;
  child.on('message', (message) => {
    state = message as GatewayReport;
  });
  const exited = once(child, 'close').then(([code, signal]): Exit => {
    process.removeListener('exit', killAll);
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
    exit = { code, signal };
    return exit;
  });

  const until = <Value>(condition: () => Value) => {
    const look = (): Value => {
      const ended = exit;
      const value = condition();
      if (value || ended === null) return value;
      throw new Error(`the gateway ended with ${ended.code ?? ended.signal}:\n${logs.join('\n')}`);
    };
    return eventually(look, { what: `${condition}`, everyMs: lookMs, withinMs: patienceMs });
  };

  const workerPids = (): readonly number[] => state?.workers ?? [];
  const isListening = () => logs.some((line) => parseEntry(line)?.msg === 'listening');
  await until(() => state !== null && (workers === null ? isListening() : workerPids().length === workers));
  const { port } = state as unknown as GatewayReport;

  const untilLogged: GatewayProcesses['untilLogged'] = (fits) =>
    until(() => logs.map(parseEntry).find((entry) => entry !== null && fits(entry)));
  const stop = (): Promise<Exit> => {
    child.kill('SIGTERM');
    return exited;
  };
  t.teardown(stop);
  const gateway: GatewayProcesses = {
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0,
    configPath,
    logs,
    workerPids,
    until,
    untilLogged,
    adminUrl: async () => String((await untilLogged(({ msg }) => msg === 'admin listener ready')).url),
    kill: (signal) => void child.kill(signal),
    exited,
    stop,
    end() {
      killAll();
      return exited;
    },
  };
  running.add(gateway);
  exited.then(() => running.delete(gateway));
  return gateway;
}

/** Lines of standard output and standard error so far. */
function linesOf({ stdout, stderr }: ChildProcess): readonly string[] {
  const lines: string[] = [];
  for (const stream of [stdout, stderr]) {
    if (stream !== null) createInterface({ input: stream }).on('line', (line) => void lines.push(line));
  }
  return lines;
}

/** Ends what still runs. */
export async function endGateways(): Promise<void> {
  await Promise.all([...running].map((gateway) => gateway.end()));
}

/** Returns the pids of a process's children, from the system; none if it has ended. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}

/** Whether a process lives. One that has ended and was not yet collected by its parent does not. */
function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Resolves when none of these processes lives any more. */
export function untilGone(pids: readonly number[]): Promise<boolean> {
  return eventually(() => !pids.some(isRunning), { what: `the end of ${pids}`, everyMs: 10 });
}

/** Kills a process if it exists. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

/** Writes a config file: a JSON value, or a text as it is. */
export function writeConfig(path: string, config: unknown): void {
  writeFileSync(path, typeof config === 'string' ? config : JSON.stringify(config));
}

/** Parses a line of the log, or returns null for another line of the output. */
export function parseEntry(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
}
