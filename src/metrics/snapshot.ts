import type { GaugeTables } from './gauges.js';
import type { SeriesTable } from './series.js';
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

/** Everything that a table has counted, and the gauges of that moment: plain data for JSON. */
export interface MetricsSnapshot {
  readonly counters: readonly NumberRows[];
  readonly histograms: readonly HistogramRows[];
  readonly gauges: readonly NumberRows[];
}

/** A copy of the tables that shares nothing with them. Series with labels that have counted nothing are left out. */
export function snapshotOf({ counters, histograms }: Tables, gauges: GaugeTables): MetricsSnapshot {
  return {
    counters: numberRows(
      counters,
      ({ series, values }, number) => series.width === 0 || values[number] !== 0,
    ),
    histograms: histogramRows(histograms),
    gauges: numberRows(gauges, () => true),
  };
}

function numberRows(
  tables: Readonly<Record<string, NumberTable>>,
  isTold: (table: NumberTable, number: number) => boolean,
): NumberRows[] {
  const all: NumberRows[] = [];
  for (const [name, table] of Object.entries(tables)) {
    const { series } = table;
    const labels: string[] = [];
    const values: number[] = [];
    for (let number = 0; number < series.size; number++) {
      if (!isTold(table, number)) continue;
      pushLabels(labels, series, number);
      values.push(table.values[number] as number);
    }
    if (values.length > 0) all.push([name, labels, values]);
  }
  return all;
}

function histogramRows(tables: Readonly<Record<string, HistogramTable>>): HistogramRows[] {
  const all: HistogramRows[] = [];
  for (const [name, table] of Object.entries(tables)) {
    const { series } = table;
    const labels: string[] = [];
    const counts: number[] = [];
    const sums: number[] = [];
    for (let number = 0; number < series.size; number++) {
      const histogram = table.numbered(number);
      if (series.width > 0 && histogram.counts.every((count) => count === 0)) continue;
      pushLabels(labels, series, number);
      counts.push(...histogram.counts);
      sums.push(histogram.sum);
    }
    if (sums.length > 0) all.push([name, labels, counts, sums]);
  }
  return all;
}

function pushLabels(labels: string[], series: SeriesTable, number: number): void {
  const from = number * series.width;
  for (let at = from; at < from + series.width; at++) labels.push(series.labels[at] as string);
}
