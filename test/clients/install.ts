import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';

/**
 * Packages that clients are run from, in one version each; npm's names for several of one package. What they need in turn
 * is in `locks/`, which `npm install --package-lock-only --omit-lockfile-registry-resolved` makes of the same list.
 * `install` and a test refuse a lock of another list.
 */
export const packages = {
  agents: {
    '@anthropic-ai/claude-code': '2.1.332',
    '@github/copilot': '1.0.102',
    '@google/gemini-cli': '0.61.0',
    '@openai/codex': '0.171.0',
    'opencode-ai': '1.18.33',
  },
  'ai-sdk': {
    ai6: 'npm:ai@6.0.326',
    'ai6-anthropic': 'npm:@ai-sdk/anthropic@3.0.140',
    'ai6-google': 'npm:@ai-sdk/google@3.0.141',
    'ai6-openai': 'npm:@ai-sdk/openai@3.0.141',
    'ai6-openai-compatible': 'npm:@ai-sdk/openai-compatible@2.0.92',
    ai7: 'npm:ai@7.0.173',
    'ai7-anthropic': 'npm:@ai-sdk/anthropic@4.0.105',
    'ai7-google': 'npm:@ai-sdk/google@4.0.121',
    'ai7-openai': 'npm:@ai-sdk/openai@4.0.118',
    'ai7-openai-compatible': 'npm:@ai-sdk/openai-compatible@3.0.92',
    zod: '4.1.12',
  },
  mistral: { '@mistralai/mistralai': '2.7.0' },
} as const;

/** Brings what a package gives that is in `modules`, as `install` says it. */
export async function load<Module>(modules: string, name: string): Promise<Module> {
  const { resolve } = createRequire(join(modules, 'none.js'));
  return (await import(pathToFileURL(resolve(name)).href)) as Module;
}

const execute = promisify(execFile);
/** In the sources, from `dist` where this file runs compiled. */
const locks = join(import.meta.dirname, '..', '..', '..', 'test', 'clients', 'locks');

/**
 * @returns the text of the lock file of packages
 * @throws Error where it was made of another list than theirs
 */
export function lockOf(name: keyof typeof packages): string {
  const path = join(locks, `${name}.json`);
  const lock = readFileSync(path, 'utf8');
  const { packages: locked } = JSON.parse(lock) as { packages: { '': { dependencies: object } } };
  if (!isDeepStrictEqual(locked[''].dependencies, packages[name]))
    throw new Error(`${path} is the lock of another list than packages['${name}']: make it again`);
  return lock;
}

/**
 * Installs packages into a folder outside the project, once for all runs on this machine. None of their scripts is run.
 * @returns the path of its `node_modules`
 * @throws Error with what npm said
 */
export async function install(name: keyof typeof packages): Promise<string> {
  const manifest = JSON.stringify({ private: true, dependencies: packages[name] });
  const lock = lockOf(name);
  const version = createHash('sha256').update(manifest).update(lock).digest('hex').slice(0, 12);
  const folder = join(tmpdir(), 'model-gateway-clients', `${name}-${version}`);
  const modules = join(folder, 'node_modules');
  if (existsSync(folder)) return modules;
  const making = `${folder}.${process.pid}`;
  mkdirSync(making, { recursive: true });
  writeFileSync(join(making, 'package.json'), manifest);
  writeFileSync(join(making, 'package-lock.json'), lock);
  try {
    // Not `ci`, which refuses a lock without the builds for other systems that a registry does not have.
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund'];
    await execute('npm', args, { cwd: making, timeout: 500_000, maxBuffer: 1 << 28 });
    renameSync(making, folder);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return modules;
}
