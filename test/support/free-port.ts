import { claimPort } from '../../src/supervisor/port.js';

/**
 * An address of this host that no other process of the tests has: nobody listens on it where this one does not, nor on a
 * port of it that this one has closed. That of a closed port of 127.0.0.1 may be another's in the next moment. It is
 * made of the process id, which has 22 bits at most.
 */
export const ownAddress = `127.${64 + (process.pid >> 16)}.${(process.pid >> 8) & 255}.${process.pid & 255}`;

/**
 * A port of 127.0.0.1 at which nobody listens at this moment. As long as this process lives no other one is given it,
 * nor picks it for a gateway, nor is any client at it.
 */
export function freePort(): Promise<number> {
  return claimPort('127.0.0.1', 0);
}
