import { performance } from 'node:perf_hooks';

/** A larger difference means that the clock was set. */
const maxDriftMs = 5;
/** Most readings of the two clocks: they are read again if the process was delayed in between. */
const maxReadings = 5;
const longestReadingMs = 1;

/** Converts times of `performance.now()` to Unix milliseconds, always the same for the same time. */
export class UnixTime {
  /** Cached: the clock has whole milliseconds, so a time could otherwise differ by one between conversions. */
  #offset = offsetNow();

  /** @returns whole Unix milliseconds */
  at(time: number): number {
    return Math.round(time + this.#offset);
  }

  /** Checks whether the host's clock was set. Called now and then, not for each conversion. */
  check(): void {
    const offset = offsetNow();
    if (Math.abs(offset - this.#offset) > maxDriftMs) this.#offset = offset;
  }
}

/** The offset from `performance.now()` to Unix time, accurate to a millisecond. */
function offsetNow(): number {
  let offset = 0;
  for (let reading = 0; reading < maxReadings; reading++) {
    const before = performance.now();
    offset = Date.now() - before;
    if (performance.now() - before < longestReadingMs) break;
  }
  return offset;
}
