import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';

interface RedisOptions {
  /** Further arguments of the server. */
  readonly args?: readonly string[];
}

/** A Redis server of the tests, on 127.0.0.1. */
interface RedisServer {
  readonly port: number;
  /** `redis://127.0.0.1:PORT` */
  readonly url: string;
  /** Sends one command without spaces in its arguments. @returns the reply's first line, and all lines of a bulk */
  command(...words: string[]): Promise<string>;
  /** Ends it, and removes its files. */
  stop(): Promise<void>;
}

/** Why tests of Redis are skipped if `startRedis` returns null. */
export const noRedis = 'there is no redis-server (Debian: apt-get install redis-server)';

const mostTries = 5;

/**
 * Starts a redis-server on a free port in its own folder.
 * @returns when it serves; null if the program is missing
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer | null> {
  for (let tries = 1; ; tries += 1) {
    // Another process may take the port first.
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'redis-'));
    try {
      const child = await launch(port, folder, options);
      if (child !== null) return createServerHandle(child, { port, folder });
      rmSync(folder, { recursive: true, force: true });
      return null;
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      if (tries === mostTries) throw error;
    }
  }
}

/**
 * Starts a cluster of three servers without replicas.
 * @returns when every node knows all slots; null if redis-server is missing
 */
export async function startRedisCluster(): Promise<readonly RedisServer[] | null> {
  const nodes: RedisServer[] = [];
  const busPorts: number[] = [];
  for (let index = 0; index < 3; index += 1) {
    const busPort = await freePort();
    const cluster = ['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`];
    const node = await startRedis({ args: [...cluster, '--cluster-node-timeout', '2000'] });
    if (node === null) return null;
    nodes.push(node);
    busPorts.push(busPort);
  }
  const bounds = [0, 5461, 10_923, 16_384];
  for (const [index, node] of nodes.entries()) {
    const last = (bounds[index + 1] ?? 0) - 1;
    await node.command('CLUSTER', 'ADDSLOTSRANGE', `${bounds[index]}`, `${last}`);
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', `${index + 1}`);
    const meet = [`${nodes[0]?.port}`, `${busPorts[0]}`];
    if (index > 0) await node.command('CLUSTER', 'MEET', '127.0.0.1', ...meet);
  }
  const isWhole = (info: string): boolean =>
    /cluster_state:ok/.test(info) && /cluster_slots_ok:16384/.test(info);
  for (const node of nodes)
    await eventually(() => node.command('CLUSTER', 'INFO'), { fits: isWhole, everyMs: 20 });
  return nodes;
}

function createServerHandle(
  child: ChildProcess,
  { port, folder }: { readonly port: number; readonly folder: string },
): RedisServer {
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    command: (...words) => ask(port, words),
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** @throws Error with its output if it ends instead of serving */
async function launch(port: number, folder: string, options: RedisOptions): Promise<ChildProcess | null> {
  const place = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder];
  const child = spawn(
    'redis-server',
    [...place, '--save', '', '--appendonly', 'no', ...(options.args ?? [])],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  child.once('exit', () => process.removeListener('exit', killAtExit));
  const lines: string[] = [];
  const serves = await new Promise<boolean>((resolve, reject) => {
    child.once('error', () => resolve(false));
    child.once('exit', () => reject(new Error(`redis-server ended:\n${lines.join('\n')}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      if (line.includes('Ready to accept connections')) resolve(true);
    });
  });
  if (!serves) return null;
  const reply = await send(port, ['PING']);
  if (/^(\+PONG|-NOAUTH)/.test(reply)) return child;
  child.kill('SIGKILL');
  throw new Error(`redis-server answers ${reply}`);
}

async function ask(port: number, words: readonly string[]): Promise<string> {
  const reply = await send(port, words);
  if (reply.startsWith('-')) throw new Error(`${words.join(' ')}: ${reply}`);
  return reply;
}

/** Sends one command on a new connection, and reads until the server closes it. */
async function send(port: number, words: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end(`${words.join(' ')}\r\nQUIT\r\n`);
  let reply = '';
  for await (const data of socket) reply += String(data);
  return reply;
}
