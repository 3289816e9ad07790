/** A process that was busy, and not its peer, is to blame for what goes beyond this between two looks. */
const longestLookMs = 2000;

export interface RateBound {
  /** Bytes a second; 0 for no bound. */
  readonly bytesPerSecond: number;
  /** How long it may be slower. */
  readonly graceMs: number;
}

/**
 * Whether a body comes fast enough: in every stretch as long as the grace of time in which it was awaited, it has to
 * bring what its bound says. Time in which nobody reads it does not count. Times are those of `performance.now()`.
 */
export class LeastRate {
  #since: number;
  #awaited = true;
  #awaitedMs = 0;
  /** What had come when the stretch began. */
  #bytesBefore = 0;

  constructor(now: number) {
    this.#since = now;
  }

  /** Nobody reads it for a while. */
  stop(now: number): void {
    if (!this.#awaited) return;
    this.#count(now);
    this.#awaited = false;
  }

  /** It is read again. */
  go(now: number): void {
    if (this.#awaited) return;
    this.#awaited = true;
    this.#since = now;
  }

  /** To be asked about once a second. @param bytes that have come in all */
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
