/** A clock that differs by more has been set. */
const mostDriftMs = 100;

/** Turns times of `performance.now()` into Unix milliseconds, a time into the same ones again and again. */
export class UnixTime {
  /** Kept: the clock's whole milliseconds alone would have a time differ by one from one question to the next. */
  #offset = Date.now() - performance.now();

  /** @returns whole Unix milliseconds */
  at(time: number): number {
    return Math.round(time + this.#offset);
  }

  /** Looks whether the host's clock was set. To be called now and then: nobody has to look at it for each time. */
  check(): void {
    const offset = Date.now() - performance.now();
    if (Math.abs(offset - this.#offset) > mostDriftMs) this.#offset = offset;
  }
}
