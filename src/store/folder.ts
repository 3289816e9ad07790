import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from '../errors.js';

/**
 * Makes a folder, and those above it that are not there. With `recursive` Node tries for ever where a folder is there
 * and the system says of one below it that it is not, as it does in /proc.
 * @throws Error of the system
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process has made it meanwhile.
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}
