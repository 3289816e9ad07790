import type { LatencyView } from '../admin/live-state.js';
import { type CounterName, type GaugeName, type HistogramName, histogramFamilies } from './families.js';
import type { HistogramRows, NumberRows } from './snapshot.js';
import { percentile } from './tables.js';

/** Calls `visit` with the label values and the number of every series of a family. */
export function eachSeries(
  rows: readonly NumberRows[],
  name: CounterName | GaugeName,
  visit: (labels: readonly string[], value: number) => void,
): void {
  const [, labels = [], values = []] = rows.find(([family]) => family === name) ?? [];
  const width = labels.length / values.length;
  for (const [row, value] of values.entries()) visit(labels.slice(row * width, (row + 1) * width), value);
}

/** The sum of a family. */
export function sumOf(rows: readonly NumberRows[], name: CounterName | GaugeName): number {
  let sum = 0;
  eachSeries(rows, name, (_labels, value) => {
    sum += value;
  });
  return sum;
}

/** Calls `visit` with the label values and the counts of all buckets of every series of a family. */
export function eachHistogram(
  rows: readonly HistogramRows[],
  name: HistogramName,
  visit: (labels: readonly string[], counts: readonly number[]) => void,
): void {
  const [, labels = [], counts = [], sums = []] = rows.find(([family]) => family === name) ?? [];
  const width = labels.length / sums.length;
  const buckets = histogramFamilies[name].bounds.length + 1;
  for (let row = 0; row < sums.length; row++) {
    visit(labels.slice(row * width, (row + 1) * width), counts.slice(row * buckets, (row + 1) * buckets));
  }
}

/** Zero counts for the buckets of a family. */
export function emptyBuckets(name: HistogramName): number[] {
  return new Array<number>(histogramFamilies[name].bounds.length + 1).fill(0);
}

/** Adds the counts of another series of the same family. */
export function addBuckets(sum: number[], counts: readonly number[]): void {
  for (const [bucket, count] of counts.entries()) (sum[bucket] as number) += count;
}

/** The counts of all series of a family together. */
export function bucketsOf(rows: readonly HistogramRows[], name: HistogramName): number[] {
  const sum = emptyBuckets(name);
  eachHistogram(rows, name, (_labels, counts) => addBuckets(sum, counts));
  return sum;
}

/** The latency view of a family's bucket counts. */
export function latencyOf(name: HistogramName, counts: readonly number[]): LatencyView {
  const { bounds } = histogramFamilies[name];
  return {
    p50: percentile(bounds, counts, 0.5),
    p95: percentile(bounds, counts, 0.95),
    p99: percentile(bounds, counts, 0.99),
  };
}

/**
 * Whether a request counts as an error. A request that was refused after a success status is a stream that the gateway
 * itself broke off.
 * @param status value of the label
 */
export function isError(status: string, outcome: string): boolean {
  if (status.startsWith('5') || outcome === 'upstream_error' || outcome === 'interrupted') return true;
  return outcome === 'refused' && status.startsWith('2');
}
