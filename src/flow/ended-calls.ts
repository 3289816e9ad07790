import type { CallRecord } from '../metrics/call-record.js';

/** So many calls wait at most. */
const mostCalls = 32;

/**
 * Calls that have ended and are noted together. What is done for one call after the other finds nothing of its code and
 * numbers near the processor; for many in a row, that is fetched once.
 */
export class EndedCalls {
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
    if (this.#calls.push(call) === mostCalls) this.flush();
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
