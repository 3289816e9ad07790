/** A clock that differs by more has been set. */
const mostDriftMs = 1000;

/**
 * Turns times of `performance.now()` into Unix milliseconds, a time into the same ones again and again: the clock's
 * whole milliseconds alone would have it differ by one from one question to the next.
 */
export function createUnixTime(): (time: number) => number {
  let offset = Date.now() - performance.now();
  return (time) => {
    const now = Date.now() - performance.now();
    if (Math.abs(now - offset) > mostDriftMs) offset = now;
    return Math.round(time + offset);
  };
}
