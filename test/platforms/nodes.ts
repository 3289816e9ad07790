import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';

/** A Node and its npm, as somebody has them who comes to the gateway. */
export interface InstalledNode {
  readonly version: string;
  /** Path of the program. */
  readonly path: string;
  /** Environment in which `node` and `npm` are these, and nothing is left of who runs the tests. */
  readonly env: NodeJS.ProcessEnv;
}

/** The repository, from `dist` where this file runs compiled. */
export const root = resolve(import.meta.dirname, '..', '..', '..');
/** Versions of Node, each with the npm that comes with it. */
export const nodes = { '20.19.0': '10.8.2', '22.23.5': '10.9.4', '24.22.3': '11.6.0', '26.12.1': '11.6.0' };
/** Name of the folder outside the project: what is in its `node_modules` would run its scripts. */
const cache = join(tmpdir(), 'model-gateway-nodes');
/** What a checkout does not have. */
const made = /^(node_modules|dist.*|data|\.tap|\.git)$/;

const execute = promisify(execFile);

/** Runs a program to its end. @returns what it printed @throws Error with what tells why, when it fails */
export async function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  try {
    const { stdout, stderr } = await execute(command, args, { ...options, maxBuffer: 1 << 28 });
    return `${stdout}${stderr}`;
  } catch (error) {
    const printed = [Reflect.get(Object(error), 'stdout'), Reflect.get(Object(error), 'stderr')].join('');
    throw new Error(`${command} ${args.join(' ')} failed:\n${whyOf(printed)}`);
  }
}

/** The first points of a test run that failed, with what is below them, and the end of what was printed. */
function whyOf(printed: string): string {
  const lines = printed.split('\n');
  const failed = lines.flatMap((line, index) => (/^ *not ok/.test(line) ? [index] : [])).slice(0, 3);
  const points = failed.map((index) => lines.slice(index, index + 25).join('\n'));
  // A report of tests that quotes this is not to take these for points of its own.
  return [...points, printed.slice(-2000)].join('\n...\n').replaceAll(/^/gm, '> ');
}

/** Installs a Node from the registry, once for all runs on this machine. */
export async function installNode(version: keyof typeof nodes): Promise<InstalledNode> {
  const folder = join(cache, version);
  const name = `node-linux-${process.arch}`;
  const bin = join(folder, 'bin');
  if (!existsSync(bin)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const packages = [`${name}@${version}`, `npm@${nodes[version]}`];
    await run('npm', ['install', '--prefix', folder, '--no-save', '--ignore-scripts', ...packages], {
      cwd: folder,
      env: plainEnvironment(),
    });
    const making = `${bin}.new`;
    mkdirSync(making);
    symlinkSync(join(folder, 'node_modules', name, 'bin', 'node'), join(making, 'node'));
    symlinkSync(join(folder, 'node_modules', 'npm', 'bin', 'npm-cli.js'), join(making, 'npm'));
    cpSync(making, bin, { recursive: true, verbatimSymlinks: true });
    rmSync(making, { recursive: true });
  }
  const plain = plainEnvironment();
  return {
    version,
    path: join(folder, 'node_modules', name, 'bin', 'node'),
    env: { ...plain, PATH: [bin, plain.PATH].join(delimiter) },
  };
}

/** The environment without what npm, tap and the gateway's users put in it. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const isPlain = ([name]: [string, unknown]): boolean =>
    !/^(NODE|NODE_(OPTIONS|ENV|CHANNEL_.*|V8_COVERAGE)|TAP.*|_TAP.*|INIT_CWD|GATEWAY_.*|HOST|PORT|WORKERS|LOG_LEVEL)$/.test(
      name,
    ) &&
    (!name.startsWith('npm_') || /^npm_config_(registry|userconfig|cafile|cache)$/.test(name));
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const kept = Object.entries(process.env).filter(isPlain);
  return { ...Object.fromEntries(kept), PATH: path.join(delimiter) };
}

/** Makes a folder in which nothing of the project's is found, as long as the test runs. */
export function emptyFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-checkout-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Copies what a checkout of the repository has into an empty folder. */
export function copyCheckout(folder: string): void {
  for (const name of readdirSync(root)) {
    if (!made.test(name)) cpSync(join(root, name), join(folder, name), { recursive: true });
  }
}
