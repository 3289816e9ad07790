import { type CounterName, counterFamilies, type HistogramName, histogramFamilies } from './families.js';
import { type LabelValue, noPlace, SeriesTable } from './series.js';

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

/** More than this at once is no count but a mistake, and would end exact sums. */
export const mostAdded = Number.MAX_SAFE_INTEGER;

/** Most series of a family. */
export interface SeriesCaps {
  /** Of one with a number each. */
  readonly numbers: number;
  /** Of histograms, each of which is as large as twenty numbers. */
  readonly histograms: number;
}

/** Series of about 16 KB for a family of counters, and 100 KB for one of histograms. */
export const defaultCaps: SeriesCaps = { numbers: 2000, histograms: 500 };

/** Numbers by series. */
export class NumberTable {
  readonly series: SeriesTable;
  readonly values: Float64Array;

  constructor(series: SeriesTable) {
    this.series = series;
    this.values = new Float64Array(series.limit);
  }

  /** Adds to a counter. Amounts that are not above zero, and those that cannot be meant, are left out. */
  add(amount: number, a?: LabelValue, b?: LabelValue, c?: LabelValue, d?: LabelValue): void {
    if (amount > 0 && amount <= mostAdded) {
      this.addAt(noPlace, amount, a, b, c, d);
    }
  }

  /**
   * The same for a series whose place may be known.
   * @param place `noPlace` where it is not
   * @returns the place for the next time
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

  /** Forgets all counts, and no series. */
  clear(): void {
    this.values.fill(0);
  }

  /**
   * Lets the least used series give way: what they have counted passes on to the series that they share from now on, so that
   * the sum over the family stays as it is.
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
  /** Made when they are first asked for. */
  readonly #histograms: (Histogram | undefined)[] = [];

  constructor(series: SeriesTable, bounds: readonly number[]) {
    this.bounds = bounds;
    this.series = series;
  }

  /** The histogram of a series, by its number, which is below the table's count. */
  numbered(number: number): Histogram {
    const known = this.#histograms[number];
    if (known !== undefined) return known;
    const made = new Histogram(this.bounds);
    this.#histograms[number] = made;
    return made;
  }

  /** As those of `NumberTable`. */
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

/** Everything that only grows. */
export interface Tables {
  readonly counters: Readonly<Record<CounterName, NumberTable>>;
  readonly histograms: Readonly<Record<HistogramName, HistogramTable>>;
}

/** Empty tables of every family. */
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

/** The same names with other values. */
export function mapValues<Name extends string, From, To>(
  record: Readonly<Record<Name, From>>,
  map: (value: From) => To,
): Record<Name, To> {
  const entries = Object.entries<From>(record).map(([name, value]) => [name, map(value)]);
  return Object.fromEntries(entries) as Record<Name, To>;
}

/** What times of calls are counted in. */
export interface TimeTables {
  /** By protocol. */
  readonly duration: HistogramTable;
  /** By protocol and model. */
  readonly firstByte: HistogramTable;
  readonly own: Histogram;
}

/** Counts times of calls. */
export interface CallTimes {
  /** Counts those of a call, as they are in `CallRecord`. */
  observe(durationMs: number, firstByteMs: number, ownMs: number): void;
}

/** Counts the times of calls for one model by one protocol. */
export class CallHistograms implements CallTimes {
  readonly #tables: TimeTables;
  readonly #protocol: string;
  readonly #model: string;
  /** Of its histograms. */
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
