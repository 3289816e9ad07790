import { randomInt } from 'node:crypto';

/** Far below the largest whole number that a double tells from its neighbours, even after many changes. */
const highestFirst = 2 ** 47;

/** The revision that a record begins with. */
export function firstRevision(): number {
  return randomInt(1, highestFirst);
}

/** When something expires that is to last so long from `now` on, in whole milliseconds. */
export function expiryOf(ttlMs: number, now: number): number {
  return Math.ceil(now + Math.max(1, ttlMs));
}
