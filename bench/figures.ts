/** @returns the value below which a share of the sorted values lies; 0 for none. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** @returns the middle value, or the mean of the two middle values; 0 for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(half)] ?? 0;
  return ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}

/** @returns the smallest and the largest of some costs: `9.80-11.25`. */
export const spread = (values: readonly number[]): string =>
  `${Math.min(...values).toFixed(2)}-${Math.max(...values).toFixed(2)}`;

/** @returns a count with thousands marked: `12,345`. */
export const count = (value: number): string => Math.round(value).toLocaleString('en-US');

/** @returns microseconds in the unit that reads best. */
export function duration(us: number): string {
  if (us < 1000) return `${Math.round(us)} µs`;
  return us < 10_000 ? `${(us / 1000).toFixed(2)} ms` : `${(us / 1000).toFixed(1)} ms`;
}

/** @returns a share of one core. */
export const percent = (share: number): string => `${Math.round(share * 100)} %`;
