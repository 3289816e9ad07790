#!/usr/bin/env node
// Imports nothing of the gateway before the check: Node opens the files of many modules at once, and with too low a limit it
// ends with a stack.
import { readFileSync } from 'node:fs';

/** The fewest files with which every process of a gateway can load its modules. The other commands need fewer. */
const leastFiles = 256;

/** Returns the limit of open files; null if the system does not tell. Node has already raised it as far as it may. */
function openFiles(): number | null {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}

function isOutOfFiles(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EMFILE';
}

function tellTooFew(files: number | null): void {
  process.stderr.write(
    `the limit of open files is ${files ?? 'too low'}, and the gateway needs ${leastFiles} to start, and two more for each call in flight: raise it (ulimit -n 65536, or LimitNOFILE in its systemd unit)\n`,
  );
  process.exitCode = 1;
}

const files = openFiles();
if (
  files !== null &&
  files < leastFiles &&
  process.argv.slice(2).find((word) => !word.startsWith('-')) === 'start'
)
  tellTooFew(files);
else {
  try {
    await import('./command.js');
  } catch (error) {
    if (!isOutOfFiles(error)) throw error;
    tellTooFew(files);
  }
}
