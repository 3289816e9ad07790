import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Off-heap bytes that are worth a collection. */
const worthBytes = 16 * 1024 * 1024;
/**
 * Rounds without a request before a collection is made, which stops everything for some milliseconds: one soon, and
 * one when what is kept for the next request has been let go of as well.
 */
const soonRounds = 3;
const lateRounds = 9;

/**
 * Gives memory back after a peak. The bodies of requests lie outside of V8's heap, and V8, which collects when its
 * heap grows, sees no reason to let go of them once the traffic has gone: a worker would keep its peak for hours.
 * @param open how many requests are under way
 * @returns a round to be called about once a second
 */
export function createTidy(open: () => number): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let quiet = 0;
  let worked = false;
  return () => {
    if (open() > 0) {
      quiet = 0;
      worked = true;
      return;
    }
    if (!worked) return;
    quiet++;
    if ((quiet === soonRounds || quiet === lateRounds) && process.memoryUsage().external > worthBytes)
      collect();
    if (quiet === lateRounds) worked = false;
  };
}
