import type { CallRecord } from '../metrics/call-record.js';

/** So many records wait in a queue at most. */
const mostRecords = 32;

/**
 * Call records that are noted together, some at a time: noted one by one between requests, each would find the code and
 * data of that work evicted from the processor's caches; for many in a row they are loaded once.
 */
export class RecordQueue {
  readonly #note: (call: CallRecord) => void;
  readonly #onFault: (fault: unknown, call: CallRecord) => void;
  #calls: CallRecord[] = [];

  /**
   * @param note takes note of a call
   * @param onFault hears what that throws; the calls behind it are noted all the same
   */
  constructor(note: (call: CallRecord) => void, onFault: (fault: unknown, call: CallRecord) => void) {
    this.#note = note;
    this.#onFault = onFault;
  }

  /** Has a call noted soon. They are noted in their order. */
  add(call: CallRecord): void {
    if (this.#calls.push(call) === mostRecords) this.flush();
  }

  /** Has all noted that wait. */
  flush(): void {
    const calls = this.#calls;
    this.#calls = [];
    for (const call of calls) {
      try {
        this.#note(call);
      } catch (fault) {
        this.#onFault(fault, call);
      }
    }
  }
}
