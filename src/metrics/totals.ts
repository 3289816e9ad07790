import type { CounterName, GaugeName, HistogramName } from './families.js';
import { createGaugeTables, type GaugeTables, joinGauge } from './gauges.js';
import type { SeriesTable } from './series.js';
import { type MetricsSnapshot, snapshotOf } from './snapshot.js';
import { createTables, createTablesLike, defaultCaps, type SeriesCaps, type Tables } from './tables.js';

/** What all workers have counted together, those that are gone included. Kept by the primary process. */
export interface Totals {
  /**
   * Takes what a worker has counted since it started, in place of what was known of it.
   * @param worker its process id; not to be used again after `retire` but for another worker, which begins at zero
   */
  update(worker: number, snapshot: MetricsSnapshot): void;
  /** A worker is gone: what it told last counts on, but for its gauges. Does nothing for one that told nothing. */
  retire(worker: number): void;
  /**
   * The sum: counters and histograms never go down from one call to the next. Gauges are those that living workers
   * told last.
   */
  merged(): MetricsSnapshot;
}

/**
 * Adds workers up. A worker that does not answer is not forgotten: what it told last stands until it tells more.
 * Families that this process does not know, or knows in another form, are left out.
 * @param caps most series of a family; more share the label value `other`
 */
export function createTotals(caps: SeriesCaps = defaultCaps): Totals {
  const shown = createTables(caps);
  const gone = createTablesLike(shown);
  const summed = createTablesLike(shown);
  const living = new Map<number, MetricsSnapshot>();
  return {
    update(worker, snapshot) {
      living.set(worker, snapshot);
    },
    retire(worker) {
      const last = living.get(worker);
      if (last !== undefined) addSnapshot(gone, last);
      living.delete(worker);
    },
    merged() {
      copyTables(gone, summed);
      const gauges = createGaugeTables(caps);
      for (const snapshot of living.values()) {
        addSnapshot(summed, snapshot);
        addGauges(gauges, snapshot);
      }
      raiseTables(shown, summed);
      return snapshotOf(shown, gauges);
    },
  };
}

/** The numbers of the series of rows; none when they are not of the form of this family. */
function numbersOf(series: SeriesTable, labels: readonly string[], rows: number): number[] {
  const { width } = series;
  if (labels.length !== rows * width) return [];
  return Array.from({ length: rows }, (_, row) => {
    const at = row * width;
    return series.find(...labels.slice(at, at + width));
  });
}

function addSnapshot(tables: Tables, snapshot: MetricsSnapshot): void {
  for (const [name, labels, values] of snapshot.counters) {
    if (!Object.hasOwn(tables.counters, name)) continue;
    const table = tables.counters[name as CounterName];
    for (const [row, number] of numbersOf(table.series, labels, values.length).entries()) {
      (table.values[number] as number) += values[row] as number;
    }
  }
  for (const [name, labels, counts, sums] of snapshot.histograms) {
    if (!Object.hasOwn(tables.histograms, name)) continue;
    const table = tables.histograms[name as HistogramName];
    const buckets = table.bounds.length + 1;
    if (counts.length !== sums.length * buckets) continue;
    for (const [row, number] of numbersOf(table.series, labels, sums.length).entries()) {
      table.numbered(number).addCounts(counts, row * buckets, sums[row] as number);
    }
  }
}

function addGauges(tables: GaugeTables, { gauges }: MetricsSnapshot): void {
  for (const [name, labels, values] of gauges) {
    if (!Object.hasOwn(tables, name)) continue;
    const { series } = tables[name as GaugeName];
    for (const [row, number] of numbersOf(series, labels, values.length).entries()) {
      joinGauge(tables, name as GaugeName, number, values[row] as number);
    }
  }
}

/** Makes one of two tables with the same series equal to the other. */
function copyTables(from: Tables, to: Tables): void {
  for (const name of Object.keys(from.counters) as CounterName[]) {
    to.counters[name].values.set(from.counters[name].values);
  }
  for (const name of Object.keys(from.histograms) as HistogramName[]) {
    const source = from.histograms[name];
    for (let number = 0; number < source.series.size; number++) {
      const histogram = to.histograms[name].numbered(number);
      histogram.clear();
      histogram.add(source.numbered(number));
    }
  }
}

/**
 * Raises what is shown to what was summed. A sum of fractions depends on the order of its parts, which changes when a
 * worker is gone, and a counter that is less by the last digit is taken for one that began anew.
 */
function raiseTables(shown: Tables, summed: Tables): void {
  for (const name of Object.keys(shown.counters) as CounterName[]) {
    raise(shown.counters[name].values, summed.counters[name].values);
  }
  for (const name of Object.keys(shown.histograms) as HistogramName[]) {
    const table = shown.histograms[name];
    for (let number = 0; number < table.series.size; number++) {
      const histogram = table.numbered(number);
      const now = summed.histograms[name].numbered(number);
      raise(histogram.counts, now.counts);
      histogram.sum = Math.max(histogram.sum, now.sum);
    }
  }
}

function raise(values: Float64Array, to: Float64Array): void {
  for (let i = 0; i < values.length; i++) {
    if ((to[i] as number) > (values[i] as number)) values[i] = to[i] as number;
  }
}
