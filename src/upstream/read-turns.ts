import { performance } from 'node:perf_hooks';
import { type Guarded, handFault } from '../errors.js';

/** A connection whose reading waits for a later turn of the event loop. */
interface DeferredReader extends Guarded {
  /** Continues to read. */
  readOn(): void;
}

/**
 * Bytes of a connection that count as a large read. A smaller one has probably emptied its socket, so that stopping would
 * cost more than it saves. TLS delivers each record as a read, of at most this size (RFC 8446 section 5.1), so smaller
 * reads of a connection are added up.
 */
export const largeRead = 16 * 1024;

/** How long the large reads of one turn are processed. */
const turnMs = 4;
/** Connections of the queue that read in one turn, each at least once: up to 1 MB. */
const readersPerTurn = 16;

/**
 * Bounds the time that the large reads of one turn of the event loop take together, over all connections of a client.
 * Node reads a socket up to 32 times in a turn, and all sockets that have data. When clients read faster than the
 * gateway relays, each turn would read megabytes of each stream, and every other call would wait for that several times:
 * beside 50 such streams, a small call took 8 s.
 *
 * Beyond the bound, a connection stops reading, and continues in a later turn, first in, first out. Every connection
 * reads at least once in its turn.
 */
export class ReadTurns {
  #startedAt = 0;
  #isArmed = false;
  readonly #waiting: DeferredReader[] = [];

  /**
   * Counts a large read that has been processed.
   * @returns false if the connection is to stop reading until `readOn`
   */
  mayReadOn(reader: DeferredReader): boolean {
    const now = performance.now();
    if (!this.#isArmed) this.#arm(now);
    if (now - this.#startedAt < turnMs) return true;
    this.#waiting.push(reader);
    return false;
  }

  #arm(now: number): void {
    this.#isArmed = true;
    this.#startedAt = now;
    setImmediate(this.#onTurnEnd);
  }

  readonly #onTurnEnd = (): void => {
    this.#isArmed = false;
    const next = this.#waiting.splice(0, readersPerTurn);
    if (next.length === 0) return;
    // Also when none of them finds anything to read, so that the rest of the queue goes on.
    this.#arm(performance.now());
    for (const reader of next) {
      try {
        reader.readOn();
      } catch (fault) {
        handFault(reader, 'upstream', fault);
      }
    }
  };
}
