import { atOnce, type Steps } from '../wire/steps.js';
import type { CounterName, GaugeName, HistogramName } from './families.js';
import { createGaugeTables, type GaugeTables, joinGauge } from './gauges.js';
import type { SeriesTable } from './series.js';
import { type MetricsSnapshot, snapshotSteps } from './snapshot.js';
import { createTables, defaultCaps, type SeriesCaps, type Tables } from './tables.js';

/** What all workers have counted together, those that are gone included. Kept by the primary process. */
export interface Totals {
  /**
   * Takes what a worker has counted since it told the last time, and its gauges in place of those that were known, unless
   * it tells none, as a part of a snapshot does.
   * @param worker its process id; not to be used again after `retire` but for another worker
   */
  update(worker: number, snapshot: MetricsSnapshot): void;
  /** A worker is gone: what it has told counts on, but for its gauges. Does nothing for one that told nothing. */
  retire(worker: number): void;
  /**
   * The sum: counters and histograms never go down from one call to the next, but those of a series that has given way
   * to busier ones are found among `other` from then on. Gauges are those that living workers told last.
   */
  merged(): MetricsSnapshot;
  /** Does that in steps. */
  mergedSteps(): Steps<MetricsSnapshot>;
}

/**
 * Adds workers up. A worker that does not answer is not forgotten: its gauges stand until it tells more. Families that
 * this process does not know, or knows in another form, are left out.
 * @param caps most series of a family; the least used share the label value `other`
 */
export function createTotals(caps: SeriesCaps = defaultCaps): Totals {
  const tables = createTables(caps);
  const living = new Map<number, MetricsSnapshot['gauges']>();
  function* mergedSteps(): Steps<MetricsSnapshot> {
    const gauges = yield* mergedGauges([...living.values()]);
    return yield* snapshotSteps(tables, gauges, (table) => void table.renew());
  }
  return {
    update(worker, snapshot) {
      addSnapshot(tables, snapshot);
      if (snapshot.gauges.length > 0) living.set(worker, snapshot.gauges);
    },
    retire(worker) {
      living.delete(worker);
    },
    merged: () => atOnce(mergedSteps()),
    mergedSteps,
  };
}

/** The numbers of the series of rows; none when they are not of the form of this family. @param uses of each of them */
function numbersOf(series: SeriesTable, labels: readonly string[], uses: readonly number[]): number[] {
  const { width } = series;
  if (labels.length !== uses.length * width) return [];
  return uses.map((used, row) =>
    series.numberAt(series.placeOf(...labels.slice(row * width, (row + 1) * width)), used),
  );
}

function addSnapshot(tables: Tables, snapshot: MetricsSnapshot): void {
  for (const [name, labels, values] of snapshot.counters) {
    if (!Object.hasOwn(tables.counters, name)) continue;
    const table = tables.counters[name as CounterName];
    for (const [row, number] of numbersOf(table.series, labels, values).entries()) {
      (table.values[number] as number) += values[row] as number;
    }
  }
  for (const [name, labels, counts, sums] of snapshot.histograms) {
    if (!Object.hasOwn(tables.histograms, name)) continue;
    const table = tables.histograms[name as HistogramName];
    const buckets = table.bounds.length + 1;
    if (counts.length !== sums.length * buckets) continue;
    const uses = sums.map((_sum, row) => totalOf(counts, row * buckets, buckets));
    for (const [row, number] of numbersOf(table.series, labels, uses).entries()) {
      table.numbered(number).addCounts(counts, row * buckets, sums[row] as number);
    }
  }
}

function totalOf(counts: readonly number[], from: number, length: number): number {
  let total = 0;
  for (let at = from; at < from + length; at++) total += counts[at] as number;
  return total;
}

/** Rows of all workers, for which there is always room: each has told of few, and what is of this moment is not merged. */
function* mergedGauges(all: readonly MetricsSnapshot['gauges'][]): Steps<GaugeTables> {
  const rows = all.map((gauges) => Math.max(0, ...gauges.map(([, , values]) => values.length)));
  const tables = createGaugeTables({ numbers: roomFor(rows.reduce((sum, each) => sum + each, 0)) });
  for (const gauges of all) {
    for (const [name, labels, values] of gauges) {
      if (!Object.hasOwn(tables, name)) continue;
      const { series } = tables[name as GaugeName];
      for (const [row, number] of numbersOf(series, labels, values).entries()) {
        joinGauge(tables, name as GaugeName, number, values[row] as number);
      }
      yield;
    }
  }
  return tables;
}

/** The limit of a table in which so many series have numbers of their own. */
function roomFor(rows: number): number {
  return Math.ceil((rows + 2) * 1.25);
}
