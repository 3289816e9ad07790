import type { CallFacts } from '../metrics/recorder.js';
import type { LedgerLine } from '../store/store.js';
import { isTime, type UsageNote } from './entry.js';
import { createRows, UsagePage } from './page.js';
import { SumCollector } from './sums.js';

/** What a batch adds to the ledger: pages of calls as its lines, and what these add to the sums. */
export interface UsageBatchContent {
  readonly lines: readonly LedgerLine[];
  readonly sums: ReturnType<SumCollector['sums']>;
}

/** Calls that go to the ledger together. Each is written as it comes, so that of those that wait only texts are kept. */
export class UsageBatch {
  readonly #lines: LedgerLine[] = [];
  readonly #sums = new SumCollector();
  readonly #rows = createRows();
  readonly #record: (facts: CallFacts) => void;
  #page: UsagePage | null = null;
  #entries = 0;

  /** @param record counts a call in the metrics, and keeps nothing of what it is told */
  constructor(record: (facts: CallFacts) => void) {
    this.#record = record;
  }

  /** How many calls it holds. */
  get entries(): number {
    return this.#entries;
  }

  /**
   * Takes a call; nothing of the note is kept.
   * @returns false when the call has no time that a calendar has, and cannot be taken
   */
  add(note: UsageNote): boolean {
    if (!isTime(note.at)) return false;
    if (this.#page === null || !this.#page.hasRoom(note.at)) {
      this.#endPage();
      this.#page = new UsagePage(note.at, this.#rows);
    }
    this.#page.add(note);
    this.#entries++;
    return true;
  }

  /** Has those calls counted that are not yet: they are when their page ends. */
  count(): void {
    this.#page?.count(this.#record);
  }

  /** Writes what is left; nothing is added from then on. */
  end(): UsageBatchContent {
    this.#endPage();
    return { lines: this.#lines, sums: this.#sums.sums() };
  }

  #endPage(): void {
    if (this.#page === null) return;
    this.#page.count(this.#record);
    this.#lines.push({ at: this.#page.at, value: this.#page.end(this.#sums) });
    this.#page = null;
  }
}
