import { atOnce, type Steps } from '../wire/steps.js';
import { type CollectedMetrics, collectSteps } from './collected.js';
import type { CounterName, GaugeName, HistogramName } from './families.js';
import { createGaugeTables, type GaugeTables, joinGauge } from './gauges.js';
import type { SeriesTable } from './series.js';
import { createTables, defaultCaps, type SeriesCaps, type Tables } from './tables.js';

/** The sums over all workers, including ended ones. Kept by the primary process. */
export interface Totals {
  /**
   * Adds a worker's counts since its last report. Replaces its gauges, unless the metrics have none, as a part of them.
   * @param worker its process id; after `retire`, the id stands for a new worker
   */
  update(worker: number, metrics: CollectedMetrics): void;
  /** `update` in steps. */
  updateSteps(worker: number, metrics: CollectedMetrics): Steps<void>;
  /** Called when a worker has ended: keeps its counts, drops its gauges. No-op for a worker without a report. */
  retire(worker: number): void;
  /**
   * The sums. Counters and histograms never fall between two calls, except that the counts of a replaced series move to
   * `other`. Gauges are the last ones of living workers.
   */
  merged(): CollectedMetrics;
  /** `merged` in steps. */
  mergedSteps(): Steps<CollectedMetrics>;
}

/**
 * Creates the sums over workers. The gauges of a worker that does not answer stay until its next report. Families that
 * this process does not know, or knows in another form, are ignored.
 * @param caps most series of a family; the least used share the label value `other`
 */
export function createTotals(caps: SeriesCaps = defaultCaps): Totals {
  const tables = createTables(caps);
  const living = new Map<number, CollectedMetrics['gauges']>();
  function* mergedSteps(): Steps<CollectedMetrics> {
    const gauges = yield* mergedGauges([...living.values()]);
    return yield* collectSteps(tables, gauges, (table) => void table.renew());
  }
  function* updateSteps(worker: number, metrics: CollectedMetrics): Steps<void> {
    yield* addSteps(tables, metrics);
    if (metrics.gauges.length > 0) living.set(worker, metrics.gauges);
  }
  return {
    update: (worker, metrics) => atOnce(updateSteps(worker, metrics)),
    updateSteps,
    retire(worker) {
      living.delete(worker);
    },
    merged: () => atOnce(mergedSteps()),
    mergedSteps,
  };
}

/** Returns the number of a row's series. @param uses the amount of use to count */
function numberOf(series: SeriesTable, labels: readonly string[], row: number, uses: number): number {
  const at = row * series.width;
  // Values after the labels of the row are ignored.
  return series.numberAt(series.placeOf(labels[at], labels[at + 1], labels[at + 2], labels[at + 3]), uses);
}

/** Adds metrics. Rows not in the form of their family are ignored. Between steps a series' number may change. */
function* addSteps(tables: Tables, metrics: CollectedMetrics): Steps<void> {
  for (const [name, labels, values] of metrics.counters) {
    if (!Object.hasOwn(tables.counters, name)) continue;
    const table = tables.counters[name as CounterName];
    if (labels.length !== values.length * table.series.width) continue;
    for (const [row, value] of values.entries()) {
      (table.values[numberOf(table.series, labels, row, value)] as number) += value;
      yield;
    }
  }
  for (const [name, labels, counts, sums] of metrics.histograms) {
    if (!Object.hasOwn(tables.histograms, name)) continue;
    const table = tables.histograms[name as HistogramName];
    const buckets = table.bounds.length + 1;
    if (counts.length !== sums.length * buckets || labels.length !== sums.length * table.series.width)
      continue;
    for (const [row, sum] of sums.entries()) {
      const uses = totalOf(counts, row * buckets, buckets);
      table.numbered(numberOf(table.series, labels, row, uses)).addCounts(counts, row * buckets, sum);
      yield;
    }
  }
}

function totalOf(counts: readonly number[], from: number, length: number): number {
  let total = 0;
  for (let at = from; at < from + length; at++) total += counts[at] as number;
  return total;
}

/** Joins the gauges of all workers, without a bound: each worker reports few series, and gauges do not accumulate. */
function* mergedGauges(all: readonly CollectedMetrics['gauges'][]): Steps<GaugeTables> {
  const rows = all.map((gauges) => Math.max(0, ...gauges.map(([, , values]) => values.length)));
  const tables = createGaugeTables({ numbers: roomFor(rows.reduce((sum, each) => sum + each, 0)) });
  for (const gauges of all) {
    for (const [name, labels, values] of gauges) {
      if (!Object.hasOwn(tables, name)) continue;
      const { series } = tables[name as GaugeName];
      if (labels.length !== values.length * series.width) continue;
      for (const [row, value] of values.entries()) {
        joinGauge(tables, name as GaugeName, numberOf(series, labels, row, value), value);
        yield;
      }
    }
  }
  return tables;
}

/** The limit of a table that has room for this many series. */
function roomFor(rows: number): number {
  return Math.ceil((rows + 2) * 1.25);
}
