import { statSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { atOnce } from '../wire/steps.js';
import { configChange, configParts } from './change.js';
import { loadConfig } from './load.js';
import type { LoadThreadData, LoadThreadResult } from './load-apart.js';
import { ConfigError } from './problem.js';

/** The thread that `loadConfigApart` starts, because reading a config may take seconds. */

/**
 * A pipe has given its text to the start, if it was one. To wait for another one would never end, nor would the process:
 * its exit waits for the thread, which the system does not wake.
 */
function checkFile(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFIFO() || found?.isCharacterDevice())
    throw new ConfigError([
      { path: '', message: `${path} is a pipe or device, which only a start can read` },
    ]);
}

function result(path: string): LoadThreadResult {
  try {
    checkFile(path);
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
