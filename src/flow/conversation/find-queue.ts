import { GatewayError } from '../../errors.js';

/** Values in the requested order, null for each that is gone; null instead of the list if they are too large. */
export type FoundValues = readonly (string | null)[] | null;

/** A search in the store. Neither `found` nor `failed` may throw. */
interface Search {
  readonly find: () => Promise<FoundValues>;
  /** Called with the values; has to take memory for them before it returns. */
  readonly found: (values: FoundValues) => void;
  readonly failed: (fault: unknown) => void;
}

/** Each search may return as many bytes as a request may have, and these are in memory before they are accounted for. */
const maxConcurrent = 4;
const maxWaiting = 1024;

/**
 * Reads the records of conversations, a few searches at a time. This bounds what a worker reads concurrently, however
 * many calls continue large conversations.
 */
export class FindQueue {
  #inFlight = 0;
  #waiting: Search[] = [];

  /** Calls `failed` with `overloaded` if too many searches wait already. */
  add(search: Search): void {
    if (this.#inFlight < maxConcurrent) this.#begin(search);
    else if (this.#waiting.length < maxWaiting) this.#waiting.push(search);
    else search.failed(overloaded());
  }

  #begin(search: Search): void {
    this.#inFlight += 1;
    search.find().then(
      (values) => {
        search.found(values);
        this.#next();
      },
      (fault: unknown) => {
        search.failed(fault);
        // Fail all waiting searches, since each would wait for the failing store as long again.
        const waiting = this.#waiting;
        this.#waiting = [];
        for (const each of waiting) each.failed(fault);
        this.#next();
      },
    );
  }

  #next(): void {
    this.#inFlight -= 1;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#begin(next);
  }
}

function overloaded(): GatewayError {
  return new GatewayError(
    'overloaded',
    'The gateway cannot read more conversations at the moment: try again shortly.',
    {
      retryAfter: 1,
    },
  );
}
