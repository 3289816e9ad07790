import { performance } from 'node:perf_hooks';

/** A clock that differs by more has been set. */
const mostDriftMs = 5;
/** Whoever reads two clocks may be held up in between: then they are read again, so often at most. */
const mostReadings = 5;
const longestReadingMs = 1;

/** Turns times of `performance.now()` into Unix milliseconds, a time into the same ones again and again. */
export class UnixTime {
  /** Kept: the clock's whole milliseconds alone would have a time differ by one from one question to the next. */
  #offset = offsetNow();

  /** @returns whole Unix milliseconds */
  at(time: number): number {
    return Math.round(time + this.#offset);
  }

  /** Looks whether the host's clock was set. To be called now and then: nobody has to look at it for each time. */
  check(): void {
    const offset = offsetNow();
    if (Math.abs(offset - this.#offset) > mostDriftMs) this.#offset = offset;
  }
}

/** How far Unix time is ahead of `performance.now()`, within a millisecond. */
function offsetNow(): number {
  let offset = 0;
  for (let reading = 0; reading < mostReadings; reading++) {
    const before = performance.now();
    offset = Date.now() - before;
    if (performance.now() - before < longestReadingMs) break;
  }
  return offset;
}
