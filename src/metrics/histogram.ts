/**
 * Counts of durations in fixed buckets: `counts[i]` holds those up to and with `bounds[i]` that are above the bound
 * before, and the last one those above every bound.
 *
 * The counts are doubles, which are exact to 2^53: a 32-bit bucket is full after a day at 50,000 a second.
 */
export class Histogram {
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  /** Of all durations, in seconds. */
  sum = 0;

  /** @param bounds in seconds, ascending, at least one */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  /** Durations in all buckets. */
  get count(): number {
    let count = 0;
    for (const each of this.counts) count += each;
    return count;
  }

  /** Counts a duration. One below zero is taken for zero, and what is no finite number is not counted. */
  observe(seconds: number): void {
    if (!Number.isFinite(seconds)) return;
    const { bounds } = this;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (seconds <= (bounds[middle] as number)) high = middle;
      else low = middle + 1;
    }
    (this.counts[low] as number) += 1;
    if (seconds > 0) this.sum += seconds;
  }

  /** Adds what another one with the same bounds has counted. */
  add(other: Histogram): void {
    this.addCounts(other.counts, 0, other.sum);
  }

  /** The same for counts that stand in a longer list, from `offset` on. */
  addCounts(counts: ArrayLike<number>, offset: number, sum: number): void {
    const own = this.counts;
    for (let i = 0; i < own.length; i++) (own[i] as number) += counts[offset + i] as number;
    this.sum += sum;
  }

  /** Forgets everything. */
  clear(): void {
    this.counts.fill(0);
    this.sum = 0;
  }

  /** As the function of this name, for what it has counted. */
  percentile(share: number): number | null {
    return percentile(this.bounds, this.counts, share);
  }
}

/**
 * Estimates a percentile: the duration that `share` of all (0 to 1) do not exceed, by the nearest rank. It is within
 * the bucket of the true one, so it is off by less than that bucket's width.
 * @returns seconds, at most the last bound, above which nothing is known; null where nothing was counted
 */
export function percentile(
  bounds: readonly number[],
  counts: ArrayLike<number>,
  share: number,
): number | null {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i] as number;
  if (total <= 0) return null;
  const rank = Math.max(1, Math.ceil(Math.min(1, share) * total));
  let before = 0;
  let lower = 0;
  for (let i = 0; i < bounds.length; i++) {
    const upper = bounds[i] as number;
    const inside = counts[i] as number;
    if (before + inside >= rank) return lower + ((upper - lower) * (rank - before)) / inside;
    before += inside;
    lower = upper;
  }
  return lower;
}
