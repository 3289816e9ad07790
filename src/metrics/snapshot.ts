import type { GaugeTables } from './gauges.js';
import type { HistogramTable, NumberTable, Tables } from './tables.js';

/** A family, the label values of its series one after the other, and a number for each series. */
export type NumberRows = readonly [family: string, labels: readonly string[], values: readonly number[]];

/**
 * A family, the label values of its series one after the other, the counts of all buckets of each series one after the
 * other, and the sum of each series in seconds.
 */
export type HistogramRows = readonly [
  family: string,
  labels: readonly string[],
  counts: readonly number[],
  sums: readonly number[],
];

/** Everything that was counted since its process started, and the gauges of that moment: plain data for JSON. */
export interface MetricsSnapshot {
  readonly counters: readonly NumberRows[];
  readonly histograms: readonly HistogramRows[];
  readonly gauges: readonly NumberRows[];
}

/** A copy of the tables that shares nothing with them. Families without series are left out. */
export function snapshotOf({ counters, histograms }: Tables, gauges: GaugeTables): MetricsSnapshot {
  return {
    counters: numberRows(counters),
    histograms: histogramRows(histograms),
    gauges: numberRows(gauges),
  };
}

function numberRows(tables: Readonly<Record<string, NumberTable>>): NumberRows[] {
  return Object.entries(tables)
    .filter(([, { series }]) => series.size > 0)
    .map(([name, { series, values }]) => [
      name,
      series.labels.slice(),
      Array.from(values.subarray(0, series.size)),
    ]);
}

function histogramRows(tables: Readonly<Record<string, HistogramTable>>): HistogramRows[] {
  return Object.entries(tables)
    .filter(([, { series }]) => series.size > 0)
    .map(([name, table]) => {
      const counts: number[] = [];
      const sums: number[] = [];
      for (let number = 0; number < table.series.size; number++) {
        const histogram = table.numbered(number);
        counts.push(...histogram.counts);
        sums.push(histogram.sum);
      }
      return [name, table.series.labels.slice(), counts, sums];
    });
}
