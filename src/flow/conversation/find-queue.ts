import { GatewayError } from '../../errors.js';

/** Values in the order asked for, null for each that is gone; null in place of all when they are too large. */
export type FoundValues = readonly (string | null)[] | null;

/** What is looked for in the store. Neither `found` nor `failed` may throw. */
interface Search {
  readonly ask: () => Promise<FoundValues>;
  /** Says at once how much memory it takes from now on. */
  readonly found: (values: FoundValues) => void;
  readonly failed: (fault: unknown) => void;
}

/** Each may bring as many bytes as a request may have: what they bring is in memory before anybody has room for it. */
const mostAtOnce = 4;
const mostWaiting = 1024;

/**
 * Has the records of conversations read, a few searches at a time, so that what a worker reads at once stays bounded
 * however many calls go on from large conversations.
 */
export class FindQueue {
  #underWay = 0;
  #waiting: Search[] = [];

  /** `failed` hears `overloaded` where too many wait already. */
  add(search: Search): void {
    if (this.#underWay < mostAtOnce) this.#begin(search);
    else if (this.#waiting.length < mostWaiting) this.#waiting.push(search);
    else search.failed(overloaded());
  }

  #begin(search: Search): void {
    this.#underWay += 1;
    search.ask().then(
      (values) => {
        search.found(values);
        this.#next();
      },
      (fault: unknown) => {
        search.failed(fault);
        // A store that fails would let each of them wait as long again.
        const waiting = this.#waiting;
        this.#waiting = [];
        for (const each of waiting) each.failed(fault);
        this.#next();
      },
    );
  }

  #next(): void {
    this.#underWay -= 1;
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
