import { type CounterName, counterFamilies, type HistogramName, histogramFamilies } from './families.js';
import { Histogram } from './histogram.js';
import { type LabelValue, noNumber, SeriesTable } from './series.js';

/** More than this at once is no count but a mistake, and would end exact sums. */
export const mostAdded = Number.MAX_SAFE_INTEGER;

/** Most series of a family. */
export interface SeriesLimits {
  /** Of one with a number each. */
  readonly numbers: number;
  /** Of histograms, each of which is as large as twenty numbers. */
  readonly histograms: number;
}

/** Series of about 16 KB for a family of counters, and 100 KB for one of histograms. */
export const defaultLimits: SeriesLimits = { numbers: 2000, histograms: 500 };

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
      const number = this.series.find(a, b, c, d);
      (this.values[number] as number) += amount;
    }
  }

  /**
   * The same for a series whose number may be known.
   * @param number `noNumber` where it is not
   * @returns the number for the next time, or `noNumber` for a series that has none of its own
   */
  addAt(
    number: number,
    amount: number,
    a?: LabelValue,
    b?: LabelValue,
    c?: LabelValue,
    d?: LabelValue,
  ): number {
    if (!(amount > 0 && amount <= mostAdded)) return number;
    if (number === noNumber) return this.#addFirst(amount, a, b, c, d);
    (this.values[number] as number) += amount;
    return number;
  }

  /** Apart from the rest, which is small enough to be inlined. */
  #addFirst(amount: number, a?: LabelValue, b?: LabelValue, c?: LabelValue, d?: LabelValue): number {
    const number = this.series.findOwn(a, b, c, d);
    if (number === noNumber) this.add(amount, a, b, c, d);
    else (this.values[number] as number) += amount;
    return number;
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

  /** The histogram of a series. */
  at(a?: LabelValue, b?: LabelValue, c?: LabelValue, d?: LabelValue): Histogram {
    const number = this.series.find(a, b, c, d);
    return this.#histograms[number] ?? this.numbered(number);
  }

  /** The same, or null for a series that shares its histogram with others. */
  own(a?: LabelValue, b?: LabelValue, c?: LabelValue, d?: LabelValue): Histogram | null {
    const number = this.series.findOwn(a, b, c, d);
    return number === noNumber ? null : this.numbered(number);
  }

  /** The same by the number of the series, which is below its count. */
  numbered(number: number): Histogram {
    const known = this.#histograms[number];
    if (known !== undefined) return known;
    const made = new Histogram(this.bounds);
    this.#histograms[number] = made;
    return made;
  }
}

/** Everything that only grows. */
export interface Tables {
  readonly counters: Readonly<Record<CounterName, NumberTable>>;
  readonly histograms: Readonly<Record<HistogramName, HistogramTable>>;
}

/** Empty tables of every family. */
export function createTables(limits: SeriesLimits): Tables {
  return {
    counters: mapValues(
      counterFamilies,
      ({ labels }) => new NumberTable(new SeriesTable(labels, limits.numbers)),
    ),
    histograms: mapValues(
      histogramFamilies,
      ({ labels, bounds }) => new HistogramTable(new SeriesTable(labels, limits.histograms), bounds),
    ),
  };
}

/** Empty tables whose series have the same numbers as those of other tables, now and later. */
export function createTablesLike({ counters, histograms }: Tables): Tables {
  return {
    counters: mapValues(counters, ({ series }) => new NumberTable(series)),
    histograms: mapValues(histograms, ({ series, bounds }) => new HistogramTable(series, bounds)),
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
