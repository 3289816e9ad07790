import { type Guarded, guard } from '../../errors.js';

/**
 * How many calls of a worker, and of one key, may be detached concurrently. The upstreams of further calls are cancelled.
 */
const mostAtOnce = 500;
const mostOfKey = 50;
/** How long a detached call's upstream is read, in milliseconds. */
const longestMs = 10_000;

/** A call whose client has disconnected and whose upstream is still read, only for the usage. */
export interface Detached extends Guarded {
  readonly keyId: string;
  /** Stops reading, and accounts for the call by what is known. */
  stop(): void;
}

/** The detached calls of a worker. */
export class DetachedList {
  /** Each with the timer that stops it. */
  readonly #all = new Map<Detached, NodeJS.Timeout>();
  readonly #ofKeys = new Map<string, number>();
  #isClosed = false;

  hasRoom(keyId: string): boolean {
    return !this.#isClosed && this.#all.size < mostAtOnce && (this.#ofKeys.get(keyId) ?? 0) < mostOfKey;
  }

  /** Adds a call, which is stopped after `longestMs` unless `remove` is called before. */
  add(detached: Detached): void {
    const stop = guard('timer', detached, () => detached.stop());
    this.#all.set(detached, setTimeout(stop, longestMs));
    this.#ofKeys.set(detached.keyId, (this.#ofKeys.get(detached.keyId) ?? 0) + 1);
  }

  remove(detached: Detached): void {
    const timer = this.#all.get(detached);
    if (timer === undefined) return;
    clearTimeout(timer);
    this.#all.delete(detached);
    const left = (this.#ofKeys.get(detached.keyId) ?? 1) - 1;
    if (left === 0) this.#ofKeys.delete(detached.keyId);
    else this.#ofKeys.set(detached.keyId, left);
  }

  /** Cancels all of them. No more are added from now on. */
  close(): void {
    this.#isClosed = true;
    for (const detached of this.#all.keys()) detached.stop();
  }
}
