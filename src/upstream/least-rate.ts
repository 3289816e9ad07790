/**
 * Longest interval between two checks that is counted, in milliseconds. A longer one means that this process was busy.
 */
const longestLookMs = 2000;

export interface RateBound {
  /** Bytes per second, or 0 for no bound. */
  readonly bytesPerSecond: number;
  /** How long the body may be slower, in milliseconds. */
  readonly graceMs: number;
}

/**
 * Checks whether a body arrives fast enough. Its rate is measured over stretches of at least `graceMs`, and must reach
 * the bound in each. Time during which reading is paused does not count. Times are those of `performance.now()`.
 */
export class LeastRate {
  #since: number;
  #awaited = true;
  #awaitedMs = 0;
  /** Bytes received before the current stretch began. */
  #bytesBefore = 0;

  constructor(now: number) {
    this.#since = now;
  }

  /** Called when reading pauses. */
  stop(now: number): void {
    if (!this.#awaited) return;
    this.#count(now);
    this.#awaited = false;
  }

  /** Called when reading resumes. */
  go(now: number): void {
    if (this.#awaited) return;
    this.#awaited = true;
    this.#since = now;
  }

  /** To be called about once a second. @param bytes received in total */
  isTooSlow(now: number, bytes: number, { bytesPerSecond, graceMs }: RateBound): boolean {
    if (this.#awaited) this.#count(now);
    if (this.#awaitedMs < graceMs) return false;
    const isTooSlow = (bytes - this.#bytesBefore) * 1000 < bytesPerSecond * this.#awaitedMs;
    this.#awaitedMs = 0;
    this.#bytesBefore = bytes;
    return isTooSlow;
  }

  #count(now: number): void {
    this.#awaitedMs += Math.min(longestLookMs, now - this.#since);
    this.#since = now;
  }
}
