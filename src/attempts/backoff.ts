import type { UpstreamExchange } from '../upstream/client.js';

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
export function backoffMs(attempt: number, draw: number): number {
  return draw * Math.min(longestMs, baseMs * 2 ** Math.max(0, attempt - 1));
}

/** The wait before an attempt, in the place of the request that follows it: whoever cancels that ends it. */
export class Backoff implements UpstreamExchange {
  readonly sentAt = 0;
  readonly bodyReleased = false;
  readonly #timer: NodeJS.Timeout;

  /** @param ms milliseconds until `then` is called, unless it is cancelled before */
  constructor(ms: number, then: () => void) {
    this.#timer = setTimeout(then, ms);
  }

  resume(): void {}

  cancel(): void {
    clearTimeout(this.#timer);
  }
}
