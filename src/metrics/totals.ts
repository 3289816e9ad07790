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
  /** Does that in steps. */
  updateSteps(worker: number, snapshot: MetricsSnapshot): Steps<void>;
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
  function* updateSteps(worker: number, snapshot: MetricsSnapshot): Steps<void> {
    yield* addSteps(tables, snapshot);
    if (snapshot.gauges.length > 0) living.set(worker, snapshot.gauges);
  }
  return {
    update: (worker, snapshot) => atOnce(updateSteps(worker, snapshot)),
    updateSteps,
    retire(worker) {
      living.delete(worker);
    },
    merged: () => atOnce(mergedSteps()),
    mergedSteps,
  };
}

/** The number of the series of a row. @param uses of it */
function numberOf(series: SeriesTable, labels: readonly string[], row: number, uses: number): number {
  const at = row * series.width;
  // What stands behind the labels of the row is not looked at.
  return series.numberAt(series.placeOf(labels[at], labels[at + 1], labels[at + 2], labels[at + 3]), uses);
}

/** Rows that are not of the form of their family are left out. The next step may find a series under another number. */
function* addSteps(tables: Tables, snapshot: MetricsSnapshot): Steps<void> {
  for (const [name, labels, values] of snapshot.counters) {
    if (!Object.hasOwn(tables.counters, name)) continue;
    const table = tables.counters[name as CounterName];
    if (labels.length !== values.length * table.series.width) continue;
    for (const [row, value] of values.entries()) {
      (table.values[numberOf(table.series, labels, row, value)] as number) += value;
      yield;
    }
  }
  for (const [name, labels, counts, sums] of snapshot.histograms) {
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

/** Rows of all workers, for which there is always room: each has told of few, and what is of this moment is not merged. */
function* mergedGauges(all: readonly MetricsSnapshot['gauges'][]): Steps<GaugeTables> {
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

/** The limit of a table in which so many series have numbers of their own. */
function roomFor(rows: number): number {
  return Math.ceil((rows + 2) * 1.25);
}
