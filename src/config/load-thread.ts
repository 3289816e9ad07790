import { parentPort, workerData } from 'node:worker_threads';
import { atOnce } from '../wire/steps.js';
import { configChange, configParts } from './change.js';
import { loadConfig } from './load.js';
import type { LoadThreadData, LoadThreadResult } from './load-apart.js';
import { ConfigError } from './problem.js';

/** The thread that `loadConfigApart` starts, because reading a config may take seconds. */

function result(path: string): LoadThreadResult {
  try {
    // As text, in parts. Reading it again takes a fifth of the time that a copy of so many objects does.
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
