import { claimPort } from '../../src/supervisor/port.js';

/** A port of 127.0.0.1 at which nobody listens at this moment, nor any client of the tests beside this one is. */
export function freePort(): Promise<number> {
  return claimPort('127.0.0.1', 0);
}
