import { closeSync, openSync } from 'node:fs';
import { errorCode } from '../errors.js';

/** Descriptors that have to be free again before more connections are accepted. */
const enough = 32;

/** Opens a descriptor of a file that is cheap to open. Throws as `openSync` does. */
type OpenFile = () => number;

/** Error codes: no descriptor is left for the process, or for the system. */
const outOfDescriptors: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);

const openNull: OpenFile = () => openSync('/dev/null', 'r');

/**
 * Checks whether this process has descriptors left for connections. Without any, uWS tries to accept the next
 * connection in every turn of the event loop, which wastes nearly half a core (measured: 42 % of one). The listener is
 * therefore closed for a while. A momentary shortage does not close it, since that resets the connections in its queue.
 */
export class DescriptorWatch {
  readonly #open: OpenFile;
  /** None was left at the last check. */
  #wasShort = false;
  #isShort = false;

  constructor(open: OpenFile = openNull) {
    this.#open = open;
  }

  /** Checks now. @returns true from the second check in a row without any left, until `enough` are free again */
  isShort(): boolean {
    const has = this.#has(this.#isShort ? enough : 1);
    this.#isShort = !has && (this.#isShort || this.#wasShort);
    this.#wasShort = !has;
    return this.#isShort;
  }

  #has(count: number): boolean {
    const opened: number[] = [];
    try {
      while (opened.length < count) opened.push(this.#open());
      return true;
    } catch (fault) {
      // Other errors, such as a missing file, say nothing about descriptors.
      return !outOfDescriptors.has(errorCode(fault));
    } finally {
      for (const descriptor of opened) closeSync(descriptor);
    }
  }
}
