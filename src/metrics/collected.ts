import type { Steps } from '../wire/steps.js';
import type { GaugeTables } from './gauges.js';
import type { SeriesTable } from './series.js';
import type { HistogramTable, NumberTable, Tables } from './tables.js';

/** A family, the label values of its series in sequence, and a number for each series. */
export type NumberRows = readonly [family: string, labels: readonly string[], values: readonly number[]];

/**
 * A family, the label values of its series in sequence, the bucket counts of its series in sequence, and the sum of each
 * series in seconds.
 */
export type HistogramRows = readonly [
  family: string,
  labels: readonly string[],
  counts: readonly number[],
  sums: readonly number[],
];

/** The counts of all tables, and the gauges at that time: plain data for JSON. */
export interface CollectedMetrics {
  readonly counters: readonly NumberRows[];
  readonly histograms: readonly HistogramRows[];
  readonly gauges: readonly NumberRows[];
}

type Table = NumberTable | HistogramTable;

const leaveAsIs = (): void => {};

/**
 * Copies the tables, one per step. Series with labels and without counts are left out.
 * @param before called for a table before it is copied, in the same step; `after` is called after that
 */
export function* collectSteps(
  { counters, histograms }: Tables,
  gauges: GaugeTables,
  before: (table: Table) => void = leaveAsIs,
  after: (table: Table) => void = leaveAsIs,
): Steps<CollectedMetrics> {
  const isCounted = ({ series, values }: NumberTable, number: number): boolean =>
    series.width === 0 || values[number] !== 0;
  const copied: { counters: NumberRows[]; histograms: HistogramRows[]; gauges: NumberRows[] } = {
    counters: [],
    histograms: [],
    gauges: [],
  };
  for (const [name, table] of Object.entries(counters)) {
    before(table);
    copied.counters.push(...numberRows(name, table, isCounted));
    after(table);
    yield;
  }
  for (const [name, table] of Object.entries(histograms)) {
    before(table);
    copied.histograms.push(...histogramRows(name, table));
    after(table);
    yield;
  }
  for (const [name, table] of Object.entries(gauges)) {
    copied.gauges.push(...numberRows(name, table, () => true));
    yield;
  }
  return copied;
}

/** Splits metrics into parts of one family each; all gauges are in the last part. */
export function* metricsParts({
  counters,
  histograms,
  gauges,
}: CollectedMetrics): Generator<CollectedMetrics, void, undefined> {
  for (const rows of counters) yield { counters: [rows], histograms: [], gauges: [] };
  for (const rows of histograms) yield { counters: [], histograms: [rows], gauges: [] };
  yield { counters: [], histograms: [], gauges };
}

function numberRows(
  name: string,
  table: NumberTable,
  isTold: (table: NumberTable, number: number) => boolean,
): NumberRows[] {
  const { series } = table;
  const labels: string[] = [];
  const values: number[] = [];
  for (let number = 0; number < series.size; number++) {
    if (!isTold(table, number)) continue;
    pushLabels(labels, series, number);
    values.push(table.values[number] as number);
  }
  return values.length > 0 ? [[name, labels, values]] : [];
}

function histogramRows(name: string, table: HistogramTable): HistogramRows[] {
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
  return sums.length > 0 ? [[name, labels, counts, sums]] : [];
}

function pushLabels(labels: string[], series: SeriesTable, number: number): void {
  const from = number * series.width;
  for (let at = from; at < from + series.width; at++) labels.push(series.labels[at] as string);
}
