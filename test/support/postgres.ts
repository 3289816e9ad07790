import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';

interface PostgresOptions {
  /** Further settings of the server, as `name=value`. */
  readonly settings?: readonly string[];
  /** Password of the only user, which every connection then needs. */
  readonly password?: string;
}

/** A PostgreSQL server of the tests, on 127.0.0.1. Its user and its database are named `postgres`. */
export interface PostgresServer {
  readonly port: number;
  /** `postgres://postgres@127.0.0.1:PORT/postgres` */
  readonly url: string;
  /** Runs an SQL statement. @returns the lines that `psql` writes, with `|` between columns */
  query(sql: string): string;
  /** @returns the output of `pg_dump` for a schema */
  dump(schema: string): string;
  /** Restores a schema from its dump while others use it. */
  restore(schema: string, dump: string): void;
  /** Processor time of all of its processes so far, in seconds. */
  cpuSeconds(): number;
  /** Pids of all of its processes, for stopping and continuing them. */
  signal(signal: NodeJS.Signals): void;
  /** Limits the size of its files from now on, as if the disk were full; null for no limit. */
  limitFiles(bytes: number | null): void;
  /** Ends it like a crash. */
  crash(): Promise<void>;
  /** Restarts it on the same port after a crash. */
  restart(): Promise<void>;
  /** Ends it, and removes its files. */
  stop(): Promise<void>;
}

/** Why tests of PostgreSQL are skipped if `startPostgres` returns null. */
export const noPostgres = 'there is no PostgreSQL (Debian: apt-get install postgresql)';

/** The user `nobody`, since the server refuses to run as root. */
const unprivileged = 65_534;
const runAs = process.getuid?.() === 0 ? { uid: unprivileged, gid: unprivileged } : {};
const mostTries = 5;
const installed = '/usr/lib/postgresql';

/** A cluster that was never started. Servers start from copies of it. */
let template: string | null = null;

/** Folder with the programs of the newest version; null without any. */
function programs(): string | null {
  const versions = existsSync(installed) ? readdirSync(installed).map(Number).filter(Number.isFinite) : [];
  const newest = versions.sort((a, b) => b - a)[0];
  return newest === undefined ? null : join(installed, `${newest}`, 'bin');
}

/**
 * Starts a server on a free port in its own folder.
 * @returns when it serves; null if the programs are missing
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer | null> {
  const bin = programs();
  if (bin === null) return null;
  const folder = ownFolder();
  execFileSync('cp', ['-r', makeTemplate(bin), join(folder, 'data')], { ...runAs, cwd: folder });
  for (let tries = 1; ; tries += 1) {
    // Another process may take the port first.
    const port = await freePort();
    try {
      const place = { bin, folder, port, options };
      const child = await launch(place);
      const server = createServerHandle(child, place);
      if (options.password !== undefined) demandPassword(server, folder, options.password);
      return server;
    } catch (error) {
      if (tries < mostTries) continue;
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }
}

/**
 * Starts a standby that ends with the test: a copy of a server, to which it replicates.
 * @param port of the server, now and later
 */
export async function standbyFor(t: Pick<Test, 'teardown'>, port: number): Promise<PostgresServer> {
  const bin = programs();
  if (bin === null) throw new Error(noPostgres);
  const folder = ownFolder();
  const from = ['-h', '127.0.0.1', '-p', `${port}`, '-U', 'postgres'];
  const copy = [...from, '-D', join(folder, 'data'), '-R', '-X', 'stream', '-c', 'fast', '--no-sync'];
  await promisify(execFile)(join(bin, 'pg_basebackup'), copy, { ...runAs, cwd: folder });
  const place = { bin, folder, port: await freePort(), options: {} };
  const server = createServerHandle(await launch(place), place);
  t.teardown(() => server.stop());
  return server;
}

/** Why tests of PostgreSQL cannot run, or false. */
export function skipWithoutPostgres(): string | false {
  return programs() === null && noPostgres;
}

/** Starts a server that ends with the test. */
export async function postgresFor(
  t: Pick<Test, 'teardown'>,
  options: PostgresOptions = {},
): Promise<PostgresServer> {
  const server = await startPostgres(options);
  if (server === null) throw new Error(noPostgres);
  t.teardown(() => server.stop());
  return server;
}

interface Place {
  readonly bin: string;
  readonly folder: string;
  readonly port: number;
  readonly options: PostgresOptions;
}

function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postgres-'));
  own(folder);
  return folder;
}

function own(path: string): void {
  if (runAs.uid !== undefined) chownSync(path, runAs.uid, runAs.gid);
}

function makeTemplate(bin: string): string {
  if (template !== null) return template;
  const folder = ownFolder();
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const data = join(folder, 'data');
  const form = [
    '--auth=trust',
    '--no-sync',
    '--encoding=UTF8',
    '--locale=C',
    '--username=postgres',
    '--wal-segsize=1',
  ];
  execFileSync(join(bin, 'initdb'), ['-D', data, ...form], { ...runAs, cwd: folder, stdio: 'pipe' });
  template = data;
  return data;
}

function demandPassword(server: PostgresServer, folder: string, password: string): void {
  server.query(`ALTER USER postgres PASSWORD '${password}'`);
  const file = join(folder, 'data', 'pg_hba.conf');
  const lines = 'local all all trust\nhost all all all scram-sha-256\n';
  execFileSync('tee', [file], { ...runAs, input: lines });
  server.query('SELECT pg_reload_conf()');
}

function createServerHandle(first: ChildProcess, place: Place): PostgresServer {
  const { bin, folder, port } = place;
  let child = first;
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const run = (program: string, args: readonly string[], input = ''): string =>
    execFileSync(join(bin, program), ['-h', folder, '-p', `${port}`, '-U', 'postgres', ...args], {
      ...runAs,
      cwd: folder,
      encoding: 'utf8',
      stdio: 'pipe',
      input,
    });
  const quiet = ['-XAtq', '-v', 'ON_ERROR_STOP=1'];
  const crash = async (): Promise<void> => {
    if (!isRunning()) return;
    const exited = once(child, 'exit');
    const all = signalAll(child, 'SIGKILL');
    await exited;
    await eventually(() => !all.some(isAlive), { everyMs: 5 });
  };
  return {
    port,
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    query: (sql) => run('psql', [...quiet, '-c', sql]).trimEnd(),
    dump: (schema) => run('pg_dump', ['-n', schema]),
    restore: (schema, dump) =>
      void run('psql', [...quiet, '-1', '-f', '-'], `DROP SCHEMA "${schema}" CASCADE;\n${dump}`),
    cpuSeconds: () => [child.pid, ...childrenOf(child.pid)].reduce((sum: number, pid) => sum + cpuOf(pid), 0),
    signal: (signal) => void signalAll(child, signal),
    limitFiles(bytes) {
      // Its later child processes inherit the limit of the first one.
      for (const pid of [child.pid, ...childrenOf(child.pid)]) {
        try {
          execFileSync('prlimit', ['--pid', `${pid}`, `--fsize=${bytes ?? 'unlimited'}:`], {
            ...runAs,
            stdio: 'pipe',
          });
        } catch (error) {
          if (isAlive(pid ?? 0)) throw error;
        }
      }
    },
    crash,
    async restart() {
      // Processes of the previous server may take a moment to notice its end.
      for (let tries = 1; ; tries += 1) {
        try {
          child = await launch(place);
          return;
        } catch (error) {
          if (tries === 20 * mostTries) throw error;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    },
    async stop() {
      await crash();
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Sends a signal to the server's first process and its children. @returns the ids of the children */
function signalAll(child: ChildProcess, signal: NodeJS.Signals): readonly number[] {
  const children = childrenOf(child.pid);
  child.kill(signal);
  for (const each of children) {
    try {
      process.kill(each, signal);
    } catch {
      // It has ended in the meantime.
    }
  }
  return children;
}

/** Returns the seconds of a process and of its ended children; Linux counts hundredths. */
function cpuOf(pid: number | undefined): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    // utime, stime, cutime and cstime: see proc(5).
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
  } catch {
    return 0;
  }
}

function isAlive(pid: number): boolean {
  try {
    // A process that has ended and was not collected has no command any more.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
  } catch {
    return false;
  }
}

function childrenOf(pid: number | undefined): number[] {
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

/** @throws Error with its output if it ends instead of serving */
async function launch({ bin, folder, port, options }: Place): Promise<ChildProcess> {
  // Only a crash of the machine needs data on the disk.
  const own = ['fsync=off', 'full_page_writes=off', `unix_socket_directories=${folder}`];
  const settings = [...own, 'max_connections=200', 'shared_buffers=32MB', ...(options.settings ?? [])];
  const args = ['-D', join(folder, 'data'), '-p', `${port}`, '-h', '127.0.0.1'];
  const child = spawn(join(bin, 'postgres'), [...args, ...settings.flatMap((each) => ['-c', each])], {
    ...runAs,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const killAtExit = (): void => void signalAll(child, 'SIGKILL');
  process.once('exit', killAtExit);
  child.once('exit', () => process.removeListener('exit', killAtExit));
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`postgres ended:\n${lines.join('\n')}`)));
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (lines.length < 100) lines.push(line);
      if (line.includes('is ready to accept connections') || line.includes('is ready to accept read-only'))
        resolve();
    });
  });
  await reached(port);
  return child;
}

async function reached(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.destroy();
}
