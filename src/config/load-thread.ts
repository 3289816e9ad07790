import { parentPort, workerData } from 'node:worker_threads';
import { atOnce } from '../wire/steps.js';
import { configChange, configParts } from './change.js';
import { loadConfig } from './load.js';
import type { LoadThreadData, LoadThreadResult } from './load-apart.js';
import { ConfigError } from './problem.js';

/** Runs as a thread of its own, started by `loadConfigApart`: to read a config may take seconds. */

function result(path: string): LoadThreadResult {
  try {
    // As text, which is read again in a fifth of the time that a copy of so many objects takes, and part by part.
    const parts = configParts(atOnce(configChange(null, loadConfig(path, process.env))));
    return {
      lines: new TextEncoder().encode([...parts].map((part) => JSON.stringify(part)).join('\n')),
      problems: null,
    };
  } catch (error) {
    if (error instanceof ConfigError) return { lines: null, problems: error.problems };
    throw error;
  }
}

const told = result((workerData as LoadThreadData).path);
parentPort?.postMessage(told, told.lines === null ? [] : [told.lines.buffer]);
