import type { Quantiles } from '../figures.js';

const slots = 500_000;

/** Counts of latencies by microsecond. A list of several hundred thousand a second would grow too long. */
export class LatencyCounts {
  readonly #counts = new Uint32Array(slots);
  #total = 0;

  /** Counts a latency. Half a second or more counts as half a second. */
  add(ms: number): void {
    const us = Math.min(slots - 1, Math.max(0, Math.floor(ms * 1000)));
    this.#counts[us] = (this.#counts[us] ?? 0) + 1;
    this.#total += 1;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#total = 0;
  }

  /** Returns their quantiles, in microseconds. */
  quantilesUs(): Quantiles {
    const of = (share: number): number => this.quantileUs(share);
    return { p50: of(0.5), p90: of(0.9), p99: of(0.99), p999: of(0.999) };
  }

  /** Returns the latency in microseconds below which a share of all lies; 0 for none. */
  quantileUs(share: number): number {
    let below = 0;
    for (let us = 0; us < slots; us += 1) {
      below += this.#counts[us] ?? 0;
      if (below > this.#total * share) return us;
    }
    return 0;
  }
}
