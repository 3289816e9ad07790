import type { Quantiles } from '../figures.js';

const slots = 500_000;

/** How many latencies there were of each microsecond: at some hundred thousand a second a list of them would grow too long. */
export class LatencyCounts {
  readonly #counts = new Uint32Array(slots);
  #total = 0;

  /** Counts a latency; what takes half a second or more counts as half a second. */
  add(ms: number): void {
    const us = Math.min(slots - 1, Math.max(0, Math.floor(ms * 1000)));
    this.#counts[us] = (this.#counts[us] ?? 0) + 1;
    this.#total += 1;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#total = 0;
  }

  /** @returns what is told of them, in microseconds. */
  quantilesUs(): Quantiles {
    const of = (share: number): number => this.quantileUs(share);
    return { p50: of(0.5), p90: of(0.9), p99: of(0.99), p999: of(0.999) };
  }

  /** @returns the latency that a share of all stays below, in microseconds; 0 for none. */
  quantileUs(share: number): number {
    let below = 0;
    for (let us = 0; us < slots; us += 1) {
      below += this.#counts[us] ?? 0;
      if (below > this.#total * share) return us;
    }
    return 0;
  }
}
