import type { Histogram } from './histogram.js';
import type { HistogramTable } from './tables.js';

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
  /** Asked for when they are first needed, and kept where they are of nothing else. */
  #duration: Histogram | null = null;
  #firstByte: Histogram | null = null;

  constructor(tables: TimeTables, protocol: string, model: string) {
    this.#tables = tables;
    this.#protocol = protocol;
    this.#model = model;
  }

  observe(durationMs: number, firstByteMs: number, ownMs: number): void {
    const { duration, firstByte, own } = this.#tables;
    this.#duration ??= duration.own(this.#protocol);
    (this.#duration ?? duration.at(this.#protocol)).observe(durationMs / 1000);
    if (firstByteMs >= 0) {
      this.#firstByte ??= firstByte.own(this.#protocol, this.#model);
      (this.#firstByte ?? firstByte.at(this.#protocol, this.#model)).observe(firstByteMs / 1000);
    }
    if (ownMs >= 0) own.observe(ownMs / 1000);
  }
}
