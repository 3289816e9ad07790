import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from '../errors.js';

/**
 * Creates a folder and its missing parents. With `recursive`, Node retries forever if a folder exists but the system
 * reports that one below it does not, as in /proc.
 * @throws Error of the system
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process has created it meanwhile.
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}
