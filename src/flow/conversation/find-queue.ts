import { GatewayError } from '../../errors.js';
import { WaitingByKey } from '../waiting-by-key.js';

/** Values in the requested order, null for each that is gone; null instead of the list if they are too large. */
export type FoundValues = readonly (string | null)[] | null;

/** A search in the store. Neither `found` nor `failed` may throw. */
interface Search {
  /** Id of the key whose call waits for it. */
  readonly keyId: string;
  /** Called when the search begins. @returns null if nobody waits for it any more: then nothing else is called */
  readonly find: () => Promise<FoundValues> | null;
  /** Called with the values; has to take memory for them before it returns. */
  readonly found: (values: FoundValues) => void;
  /** Called without a `find` if the search cannot begin. */
  readonly failed: (fault: unknown) => void;
}

/** Each search may return as many bytes as a request may have, and these are in memory before they are accounted for. */
const maxConcurrent = 4;
const maxWaiting = 1024;

/**
 * Reads the records of conversations, a few searches at a time. This bounds what a worker reads concurrently, however
 * many calls continue large conversations. The keys that wait take turns, so that the searches of one key delay those of
 * another by at most one each.
 */
export class FindQueue {
  #inFlight = 0;
  readonly #waiting = new WaitingByKey<Search>();

  /** Calls `failed` with `overloaded` if too many searches wait: the last one of the key that has the most. */
  add(search: Search): void {
    if (this.#inFlight < maxConcurrent) {
      this.#begin(search);
      return;
    }
    this.#waiting.add(search.keyId, search);
    if (this.#waiting.size > maxWaiting) this.#waiting.takeLastOfMost()?.failed(overloaded());
  }

  /** @returns false if nobody waits for the search */
  #begin(search: Search): boolean {
    const finding = search.find();
    if (finding === null) return false;
    this.#inFlight += 1;
    finding.then(
      (values) => {
        search.found(values);
        this.#next();
      },
      (fault: unknown) => {
        search.failed(fault);
        // Fail all waiting searches, since each would wait for the failing store as long again.
        for (const each of this.#waiting.takeAll()) each.failed(fault);
        this.#next();
      },
    );
    return true;
  }

  #next(): void {
    this.#inFlight -= 1;
    let next = this.#waiting.take();
    while (next !== undefined && !this.#begin(next)) next = this.#waiting.take();
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
