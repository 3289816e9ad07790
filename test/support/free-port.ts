import { claimPort } from '../../src/supervisor/port.js';

/**
 * An address of this host that no other process of the tests uses. Nobody else listens on it, not even on a port of
 * it that this process has closed, while a closed port of 127.0.0.1 may be another process's in the next moment. It
 * is derived from the process id, which has at most 22 bits.
 */
export const ownAddress = `127.${64 + (process.pid >> 16)}.${(process.pid >> 8) & 255}.${process.pid & 255}`;

/**
 * Returns a port of 127.0.0.1 on which nobody listens. As long as this process lives, it is neither returned again
 * nor chosen for a gateway or a client's end of a connection.
 */
export function freePort(): Promise<number> {
  return claimPort('127.0.0.1', 0);
}
