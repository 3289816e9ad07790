import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Off-heap bytes that are worth a collection. */
const worthBytes = 16 * 1024 * 1024;
/**
 * Sweeps without a request before a collection is made, which stops everything for some milliseconds: one soon, and
 * one when what is kept for the next request has been let go of as well.
 */
const soonSweeps = 3;
const lateSweeps = 9;

/**
 * Gives memory back after a peak. The bodies of requests lie outside of V8's heap, and V8, which collects when its
 * heap grows, sees no reason to let go of them once the traffic has gone: a worker would keep its peak for hours.
 * @param served how many requests have come since the start
 * @returns the sweep, to be called about once a second
 */
export function createMemorySweep(served: () => number): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let before = 0;
  let quiet = lateSweeps;
  return () => {
    const now = served();
    if (now !== before) {
      before = now;
      quiet = 0;
    } else if (quiet < lateSweeps) {
      quiet++;
      const due = quiet === soonSweeps || quiet === lateSweeps;
      if (due && getHeapStatistics().external_memory > worthBytes) collect();
    }
  };
}
