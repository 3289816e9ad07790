import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { callerAt } from '../callers.js';
import { freePort, untilListening } from '../ports.js';
import { startProcess } from '../proc.js';
import type { Contender, Running, Setup } from './contender.js';

/** Their sources and pinned versions are in the repository, not in the compiled tree. */
export const rivalsFolder = fileURLToPath(new URL('../../../bench/rivals', import.meta.url));

const manifests = ['package.json', 'package-lock.json'] as const;
const sources = ['fastify.js', 'llms.js'] as const;
const installMs = 300_000;

/** A gateway or proxy on Node that a Node user might choose instead. */
interface Rival {
  readonly name: string;
  /** The script that Node runs, in the folder of the installed packages. */
  readonly command: (setup: Setup, port: number) => readonly string[];
  readonly reached: (setup: Setup) => Pick<Running, 'prefix' | 'path' | 'headers' | 'rewrites'>;
}

const baseOf = ({ upstreamPort, answer }: Setup): string => `http://127.0.0.1:${upstreamPort}/${answer}/v1`;
const chatPath = '/v1/chat/completions';

const rivals: readonly Rival[] = [
  {
    name: 'portkey',
    command: (_setup, port) => [
      'node_modules/@portkey-ai/gateway/build/start-server.js',
      `--port=${port}`,
      '--headless',
    ],
    reached: (setup) => ({
      prefix: '',
      path: chatPath,
      headers: { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': baseOf(setup) },
      rewrites: true,
    }),
  },
  {
    name: 'fastify',
    command: ({ upstreamPort }, port) => ['fastify.js', `${port}`, `http://127.0.0.1:${upstreamPort}`],
    reached: ({ answer }) => ({ prefix: `/${answer}`, path: `/${answer}${chatPath}` }),
  },
  {
    name: 'llms',
    command: (setup, port) => ['llms.js', `${port}`, `${baseOf(setup)}/chat/completions`, callerAt(0).model],
    reached: () => ({ prefix: '', path: chatPath, rewrites: true }),
  },
];

export const rivalNames: readonly string[] = rivals.map(({ name }) => name);

/** In the user's cache, by the pinned versions: installed once for all clones and runs. */
function installFolder(): string {
  const pinned = createHash('sha256');
  for (const name of manifests) pinned.update(readFileSync(join(rivalsFolder, name)));
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(cache, 'model-gateway', `bench-rivals-${pinned.digest('hex').slice(0, 16)}`);
}

/**
 * Installs the rivals if they are not installed yet.
 * @returns their folder
 * @throws Error when they cannot be installed
 */
function install(): string {
  const folder = installFolder();
  const done = join(folder, 'installed');
  mkdirSync(folder, { recursive: true });
  for (const name of [...manifests, ...sources]) copyFileSync(join(rivalsFolder, name), join(folder, name));
  if (existsSync(done)) return folder;
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status, error, stderr } = spawnSync('npm', ['ci', ...flags], {
    cwd: folder,
    encoding: 'utf8',
    timeout: installMs,
  });
  if (status !== 0) throw new Error(error?.message ?? (stderr.trim().split('\n')[0] || 'npm ci has failed'));
  writeFileSync(done, '');
  return folder;
}

/**
 * Returns those of the named rivals that can be installed.
 * @param say called with a sentence if they cannot be installed. None takes part then
 */
export function namedRivals(names: readonly string[], say: (sentence: string) => void): Contender[] {
  const named = rivals.filter(({ name }) => names.includes(name));
  if (named.length === 0) return [];
  try {
    const folder = install();
    return named.map((rival) => contenderOf(rival, folder));
  } catch (error) {
    const skipped = named.map(({ name }) => name).join(', ');
    say(`${skipped}: cannot be installed: ${error instanceof Error ? error.message : String(error)}`);
    return [];
  }
}

function contenderOf({ name, command, reached }: Rival, folder: string): Contender {
  return {
    name,
    async start(setup) {
      if (setup.clientTls || setup.upstreamTls) throw new Error('the bench runs it without TLS alone');
      const port = await freePort();
      const server = await startProcess({
        name,
        command: process.execPath,
        args: [...command(setup, port)],
        core: setup.core,
        cwd: folder,
        env: { ...process.env, NODE_ENV: 'production' },
        outputFile: join(setup.directory, `${name}-${port}.log`),
      });
      await untilListening(port, server);
      return { port, secure: false, process: server, ...reached(setup) };
    },
  };
}
