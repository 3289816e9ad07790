import { closeSync, openSync } from 'node:fs';

/** So many have to be free again before more connections are taken. */
const enough = 32;

/** Opens a descriptor of a file that costs nothing. Throws as `openSync` does. */
type OpenFile = () => number;

/** No descriptor is left to the process, or to the system. */
const wants: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);

const openNull: OpenFile = () => openSync('/dev/null', 'r');

/**
 * Whether this process has descriptors left for connections. Where it has none uWS asks for the next connection again in
 * every turn of the event loop, which costs nearly half a core for nothing (measured: 42 % of one), so a listener is
 * better closed for a while. A short of a moment is waited for instead: connections that wait in the queue of a listener
 * are reset with it.
 */
export class DescriptorWatch {
  readonly #open: OpenFile;
  /** None was left at the last look. */
  #wasShort = false;
  #isShort = false;

  constructor(open: OpenFile = openNull) {
    this.#open = open;
  }

  /** Takes a look. @returns whether none is left for longer than one look, and not enough of them again since */
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
    } catch (error) {
      // Of another error, such as where there is no such file, nothing follows.
      return !wants.has((error as NodeJS.ErrnoException).code ?? '');
    } finally {
      for (const descriptor of opened) closeSync(descriptor);
    }
  }
}
