import type { Call } from './call.js';

/** So many calls wait at most: they keep their memory as long. */
const mostCalls = 32;

/**
 * Whether nothing of an ended call changes any more. A task goes on to be made when its client has left, and so may an
 * upload.
 */
function isSettled({ outcome, upload }: Call): boolean {
  return outcome === 'complete' && upload === null;
}

/**
 * Calls that have ended and are noted together. What is done for one call after the other finds nothing of its code and
 * numbers near the processor; for many in a row, that is fetched once.
 */
export class EndedCalls {
  readonly #note: (call: Call) => void;
  readonly #calls: (Call | null)[] = new Array(mostCalls).fill(null);
  #count = 0;

  /** @param note takes note of a call, and keeps nothing of it */
  constructor(note: (call: Call) => void) {
    this.#note = note;
  }

  /** Has a call noted: at once where something may still change of it, or soon. They are noted in their order. */
  add(call: Call): void {
    this.#calls[this.#count++] = call;
    if (this.#count === mostCalls || !isSettled(call)) this.flush();
  }

  /** Has all noted that wait. */
  flush(): void {
    const count = this.#count;
    this.#count = 0;
    for (let index = 0; index < count; index++) {
      const call = this.#calls[index] as Call;
      this.#calls[index] = null;
      this.#note(call);
    }
  }
}
