import { performance } from 'node:perf_hooks';

/**
 * The clock of limits: milliseconds of the host's monotonic clock. It has the same value in all processes of the host,
 * whereas `performance.now()` starts anew in each.
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
