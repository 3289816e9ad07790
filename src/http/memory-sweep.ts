import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Off-heap bytes above which a collection is worthwhile. */
const worthBytes = 16 * 1024 * 1024;
/**
 * Sweeps without a request before each of two collections, which block the process for some milliseconds. The second
 * also frees what was kept for the next request until then.
 */
const soonSweeps = 3;
const lateSweeps = 9;

/**
 * Creates a sweep that frees memory after a peak. Request bodies are outside V8's heap. V8 collects when its heap
 * grows, so it would not free them when the traffic has ended, and a worker would hold its peak for hours.
 * @param served returns the number of requests since the start
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
