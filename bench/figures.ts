/** Returns the value below which a share of the sorted values lies; 0 for no values. */
function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Quantiles of the latencies at a constant rate. */
export interface Quantiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
}

/** Returns the quantiles of some values, without changing their order. */
export function quantiles(values: Float64Array): Quantiles {
  const sorted = values.slice().sort();
  const of = (share: number): number => quantile(sorted, share);
  return { p50: of(0.5), p90: of(0.9), p99: of(0.99), p999: of(0.999) };
}

/** Returns the middle value, or the mean of the two middle values; 0 for no values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(half)] ?? 0;
  return ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}

/** Returns the smallest and the largest of some costs: `9.80-11.25`. */
export const spread = (values: readonly number[]): string =>
  `${Math.min(...values).toFixed(2)}-${Math.max(...values).toFixed(2)}`;

/** Formats a count with thousands separators: `12,345`. */
export const count = (value: number): string => Math.round(value).toLocaleString('en-US');

/** Formats microseconds in a suitable unit. */
export function duration(us: number): string {
  if (us < 1000) return `${Math.round(us)} µs`;
  return us < 10_000 ? `${(us / 1000).toFixed(2)} ms` : `${(us / 1000).toFixed(1)} ms`;
}

/** Formats a share of one core. */
export const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** Share of the pairs that is trimmed at each end before the mean: other work on the machine causes outliers. */
const trimmed = 0.1;

/** Fewest pairs for which an interval is computed. */
const fewestPairs = 10;

/** Relative to the second value: 0.02 means two percent more. */
interface Difference {
  readonly low: number;
  readonly middle: number;
  readonly high: number;
}

/**
 * Computes the trimmed mean of the pairs' ratios and its 95 % interval, by the winsorized variance
 * (Yuen, The two-sample trimmed t for unequal population variances, Biometrika 1974).
 * @param values of the first side; `others` are those of the second in the same order, above 0
 * @returns null for fewer than ten pairs
 */
export function pairedDifference(values: readonly number[], others: readonly number[]): Difference | null {
  const ratios = values
    .map((value, at) => Math.log(value / (others[at] ?? Number.NaN)))
    .sort((a, b) => a - b);
  const { length } = ratios;
  if (length < fewestPairs) return null;
  const cut = Math.floor(length * trimmed);
  const inner = ratios.slice(cut, length - cut);
  const mean = inner.reduce((sum, ratio) => sum + ratio, 0) / inner.length;
  const low = inner[0] ?? 0;
  const high = inner.at(-1) ?? 0;
  const winsorized = ratios.map((ratio) => Math.min(high, Math.max(low, ratio)));
  const centre = winsorized.reduce((sum, ratio) => sum + ratio, 0) / length;
  const variance = winsorized.reduce((sum, ratio) => sum + (ratio - centre) ** 2, 0) / (length - 1);
  const error = Math.sqrt(variance / length) / (1 - (2 * cut) / length);
  // Student's t for 95 %, accurate to a hundredth from eight degrees of freedom.
  const freedom = inner.length - 1;
  const half = (1.96 + 2.4 / freedom + 3 / freedom ** 2) * error;
  return { low: Math.expm1(mean - half), middle: Math.expm1(mean), high: Math.expm1(mean + half) };
}
