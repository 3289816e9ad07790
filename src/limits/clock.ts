/**
 * Makes the clock by which limits are kept: milliseconds of the host's monotonic clock, which has the same value in
 * all of its processes, while that of `performance.now()` begins anew in each.
 */
export function hostClock(): () => number {
  const offset = Number(process.hrtime.bigint() / 1000n) / 1000 - performance.now();
  return () => performance.now() + offset;
}
