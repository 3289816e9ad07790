/** Before the first try again, in milliseconds; twice as long before each that follows. */
const baseMs = 100;
const longestMs = 2000;

/**
 * How long to wait before the same target is asked again: anything up to a bound that grows (full jitter), since calls
 * that failed together would else come back together.
 * @param attempt 1 for the first try again
 * @param draw a number in [0, 1)
 * @returns milliseconds
 */
export function backoff(attempt: number, draw: number): number {
  return draw * Math.min(longestMs, baseMs * 2 ** Math.max(0, attempt - 1));
}
