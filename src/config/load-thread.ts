import { parentPort, workerData } from 'node:worker_threads';
import { loadConfig } from './load.js';
import type { LoadThreadData, LoadThreadResult } from './load-apart.js';
import { ConfigError } from './problem.js';

/** Runs as a thread of its own, started by `loadConfigApart`: to read a config may take seconds. */

function result(path: string): LoadThreadResult {
  try {
    // As text, which is read again in a fifth of the time that a copy of so many objects takes.
    return { text: JSON.stringify(loadConfig(path, process.env)), problems: null };
  } catch (error) {
    if (error instanceof ConfigError) return { text: null, problems: error.problems };
    throw error;
  }
}

parentPort?.postMessage(result((workerData as LoadThreadData).path));
