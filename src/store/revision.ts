import { randomInt } from 'node:crypto';

/** Far below the largest safe integer, even after many changes. */
const highestFirst = 2 ** 47;

/** Returns the first revision of a record. */
export function firstRevision(): number {
  return randomInt(1, highestFirst);
}

/** Returns when something expires that has to last for this long from `now` on, in whole milliseconds. */
export function expiryOf(ttlMs: number, now: number): number {
  return Math.ceil(now + Math.max(1, ttlMs));
}
