import { type CounterName, counterFamilies, type HistogramName, histogramFamilies } from './families.js';
import { type LabelValue, noPlace, SeriesTable } from './series.js';

/**
 * Counts of durations in fixed buckets: `counts[i]` counts those above the previous bound and at most `bounds[i]`; the
 * last one counts those above every bound.
 *
 * The counts are doubles, which are exact to 2^53: a 32-bit bucket overflows after a day at 50,000 per second.
 */
export class Histogram {
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  /** Sum of all durations in seconds. */
  sum = 0;

  /** @param bounds in seconds, ascending, at least one */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  /** Counts a duration. A negative one counts as zero; NaN and infinities are not counted. */
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

  /** Adds the counts of another histogram with the same bounds. */
  add(other: Histogram): void {
    this.addCounts(other.counts, 0, other.sum);
  }

  /** The same for counts in a longer list, starting at `offset`. */
  addCounts(counts: ArrayLike<number>, offset: number, sum: number): void {
    const own = this.counts;
    for (let i = 0; i < own.length; i++) (own[i] as number) += counts[offset + i] as number;
    this.sum += sum;
  }

  /** Sets all counts to zero. */
  clear(): void {
    this.counts.fill(0);
    this.sum = 0;
  }
}

/**
 * Estimates a percentile by the nearest rank: the duration that `share` of all (0 to 1) do not exceed. The result is in
 * the same bucket as the true value, so the error is less than the width of that bucket.
 * @returns seconds, at most the last bound, above which nothing is known; null without counts
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

/** A larger amount is a fault, not a count, and would make sums inexact. */
export const mostAdded = Number.MAX_SAFE_INTEGER;

/** Bounds of the number of series of a family. */
export interface SeriesCaps {
  /** For counters and gauges. */
  readonly numbers: number;
  /** For histograms, each of which is as large as twenty numbers. */
  readonly histograms: number;
}

/** About 16 KB for a family of counters, and 100 KB for one of histograms. */
export const defaultCaps: SeriesCaps = { numbers: 2000, histograms: 500 };

/** Numbers by series. */
export class NumberTable {
  readonly series: SeriesTable;
  readonly values: Float64Array;

  constructor(series: SeriesTable) {
    this.series = series;
    this.values = new Float64Array(series.limit);
  }

  /** Adds to a counter. Amounts not above zero and those above `mostAdded` are ignored. */
  add(amount: number, a?: LabelValue, b?: LabelValue, c?: LabelValue, d?: LabelValue): void {
    if (amount > 0 && amount <= mostAdded) {
      this.addAt(noPlace, amount, a, b, c, d);
    }
  }

  /**
   * The same for a series whose place may be cached.
   * @param place `noPlace` if it is not
   * @returns the place to cache
   */
  addAt(
    place: number,
    amount: number,
    a?: LabelValue,
    b?: LabelValue,
    c?: LabelValue,
    d?: LabelValue,
  ): number {
    if (!(amount > 0 && amount <= mostAdded)) return place;
    const known = place === noPlace ? this.series.placeOf(a, b, c, d) : place;
    (this.values[this.series.numberAt(known, amount)] as number) += amount;
    return known;
  }

  /** Sets all counts to zero; keeps the series. */
  clear(): void {
    this.values.fill(0);
  }

  /**
   * Replaces the least used series. Their counts are added to the series that they share from now on, so that the sum
   * over the family stays the same.
   * @returns whether any places have changed
   */
  renew(): boolean {
    const { series, values } = this;
    return series.renewInto((number, shared) => {
      (values[shared] as number) += values[number] as number;
      values[number] = 0;
    });
  }
}

/** Histograms by series. */
export class HistogramTable {
  readonly bounds: readonly number[];
  readonly series: SeriesTable;
  /** Created at first use. */
  readonly #histograms: (Histogram | undefined)[] = [];

  constructor(series: SeriesTable, bounds: readonly number[]) {
    this.bounds = bounds;
    this.series = series;
  }

  /** The histogram of a series by its number, which has to be below the number of series. */
  numbered(number: number): Histogram {
    const known = this.#histograms[number];
    if (known !== undefined) return known;
    const made = new Histogram(this.bounds);
    this.#histograms[number] = made;
    return made;
  }

  /** Like `NumberTable.clear`. */
  clear(): void {
    for (let number = 0; number < this.series.size; number++) this.numbered(number).clear();
  }

  renew(): boolean {
    return this.series.renewInto((number, shared) => {
      this.numbered(shared).add(this.numbered(number));
      this.numbered(number).clear();
    });
  }
}

/** The tables of all counters and histograms. */
export interface Tables {
  readonly counters: Readonly<Record<CounterName, NumberTable>>;
  readonly histograms: Readonly<Record<HistogramName, HistogramTable>>;
}

/** Creates empty tables for every family. */
export function createTables(caps: SeriesCaps): Tables {
  return {
    counters: mapValues(
      counterFamilies,
      ({ labels }) => new NumberTable(new SeriesTable(labels, caps.numbers)),
    ),
    histograms: mapValues(
      histogramFamilies,
      ({ labels, bounds }) => new HistogramTable(new SeriesTable(labels, caps.histograms), bounds),
    ),
  };
}

/** Maps the values of a record. */
export function mapValues<Name extends string, From, To>(
  record: Readonly<Record<Name, From>>,
  map: (value: From) => To,
): Record<Name, To> {
  const entries = Object.entries<From>(record).map(([name, value]) => [name, map(value)]);
  return Object.fromEntries(entries) as Record<Name, To>;
}

/** The histograms of call times. */
export interface TimeTables {
  /** By protocol. */
  readonly duration: HistogramTable;
  /** By protocol and model. */
  readonly firstByte: HistogramTable;
  readonly own: Histogram;
}

/** Counts times of calls. */
export interface CallTimes {
  /** Counts the times of a call, as in `CallRecord`. */
  observe(durationMs: number, firstByteMs: number, ownMs: number): void;
}

/** Counts the times of calls of one protocol and model. */
export class CallHistograms implements CallTimes {
  readonly #tables: TimeTables;
  readonly #protocol: string;
  readonly #model: string;
  /** Cached places of its series. */
  #duration = noPlace;
  #firstByte = noPlace;

  constructor(tables: TimeTables, protocol: string, model: string) {
    this.#tables = tables;
    this.#protocol = protocol;
    this.#model = model;
  }

  observe(durationMs: number, firstByteMs: number, ownMs: number): void {
    const { duration, firstByte, own } = this.#tables;
    if (this.#duration === noPlace) this.#duration = duration.series.placeOf(this.#protocol);
    duration.numbered(duration.series.numberAt(this.#duration)).observe(durationMs / 1000);
    if (firstByteMs >= 0) {
      if (this.#firstByte === noPlace)
        this.#firstByte = firstByte.series.placeOf(this.#protocol, this.#model);
      firstByte.numbered(firstByte.series.numberAt(this.#firstByte)).observe(firstByteMs / 1000);
    }
    if (ownMs >= 0) own.observe(ownMs / 1000);
  }
}
