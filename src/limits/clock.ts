import { performance } from 'node:perf_hooks';

/**
 * The clock by which limits are kept: milliseconds of the host's monotonic clock, which has the same value in all of
 * its processes, while that of `performance.now()` begins anew in each.
 */
export class HostClock {
  readonly #offset = Number(process.hrtime.bigint() / 1000n) / 1000 - performance.now();

  now(): number {
    return performance.now() + this.#offset;
  }

  /** @param time of `performance.now()` */
  at(time: number): number {
    return time + this.#offset;
  }
}
