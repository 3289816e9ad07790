import { Worker } from 'node:worker_threads';
import { inSlices, type Steps } from '../wire/steps.js';
import { type ConfigPart, changedConfig, JoinedParts } from './change.js';
import { ConfigError, type Problem } from './problem.js';
import type { ResolvedConfig } from './resolve.js';

/** Input of the thread. */
export interface LoadThreadData {
  readonly path: string;
}

/** Result of the thread: the parts of a config, each a line of JSON, or the problems of the file. */
export type LoadThreadResult =
  | { readonly lines: Uint8Array<ArrayBuffer>; readonly problems: null }
  | { readonly lines: null; readonly problems: readonly Problem[] };

/** A thread needs several times the memory of the file, so only one runs at a time. */
let lastLoad: Promise<unknown> = Promise.resolve();

/**
 * Reads a config file as `loadConfig` does, but in a thread. A file with 100,000 keys takes seconds, in which a primary
 * process would grant no units of limits.
 * @throws ConfigError with every problem of the file
 */
export function loadConfigApart(path: string): Promise<ResolvedConfig> {
  const loading = lastLoad.then(() => load(path));
  lastLoad = loading.catch(() => {});
  return loading;
}

function load(path: string): Promise<ResolvedConfig> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./load-thread.js', import.meta.url), {
      workerData: { path } satisfies LoadThreadData,
      execArgv: [],
    });
    thread.once('message', ({ lines, problems }: LoadThreadResult) => {
      if (problems === null) resolve(inSlices(joinLines(Buffer.from(lines.buffer))));
      else reject(new ConfigError(problems));
    });
    thread.once('error', reject);
    // No-op after a message.
    thread.once('exit', (code) => reject(new Error(`the thread that reads the config ended with ${code}`)));
  });
}

function* joinLines(lines: Buffer): Steps<ResolvedConfig> {
  const joined = new JoinedParts();
  for (let from = 0; from < lines.length; ) {
    const found = lines.indexOf(0x0a, from);
    const end = found === -1 ? lines.length : found;
    joined.add(JSON.parse(lines.toString('utf8', from, end)) as ConfigPart);
    from = end + 1;
    yield;
  }
  return yield* changedConfig(null, joined.change());
}
