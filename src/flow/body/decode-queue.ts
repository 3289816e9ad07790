import { WaitingByKey } from '../waiting-by-key.js';

/** Opens a decoder, whose end `DecodeQueue.next` is told. Must not throw. @returns false if none is needed any more */
type Begin = () => boolean;

/** Half of the threads that Node decodes in, so that other work does not wait for one. Each decoder may keep 16 MiB. */
const maxOpen = 2;
/** Of one key. What their bodies hold is counted, which bounds those of all keys. */
const maxWaiting = 1024;

/**
 * Decodes bodies whose decoders take much memory or time, a few at a time: some hundred bytes can make one keep 16 MiB,
 * and decode as much as a body may have. The keys whose bodies wait take turns.
 */
export class DecodeQueue {
  #open = 0;
  readonly #waiting = new WaitingByKey<Begin>();

  /** @returns false if too many bodies of the key wait already */
  add(keyId: string, begin: Begin): boolean {
    if (this.#waiting.countOf(keyId) >= maxWaiting) return false;
    this.#waiting.add(keyId, begin);
    this.#fill();
    return true;
  }

  /** To be called when a decoder is closed. */
  next(): void {
    this.#open -= 1;
    this.#fill();
  }

  #fill(): void {
    while (this.#open < maxOpen) {
      const begin = this.#waiting.take();
      if (begin === undefined) return;
      this.#open += 1;
      if (!begin()) this.#open -= 1;
    }
  }
}
