import { type Guarded, guard } from '../../errors.js';

/** Calls of a worker, and of one key, whose upstreams are read on for at once; those of others are cancelled. */
const mostAtOnce = 500;
const mostOfKey = 50;
/** An upstream is read on for so long at most, in milliseconds. */
const longestMs = 10_000;

/** What is heard of a call's upstream though its client has left, for the usage alone. */
export interface Detached extends Guarded {
  readonly keyId: string;
  /** Reads no more, and accounts for the call by what is known. */
  stop(): void;
}

/** The calls of a worker whose clients have left, and whose upstreams are read on for. */
export class DetachedList {
  /** Each with what stops it when it has taken too long. */
  readonly #all = new Map<Detached, NodeJS.Timeout>();
  readonly #ofKeys = new Map<string, number>();
  #isClosed = false;

  hasRoom(keyId: string): boolean {
    return !this.#isClosed && this.#all.size < mostAtOnce && (this.#ofKeys.get(keyId) ?? 0) < mostOfKey;
  }

  /** Takes in what is stopped once it has taken too long, unless `remove` takes it out before. */
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

  /** Cancels them all; from now on none is added. */
  close(): void {
    this.#isClosed = true;
    for (const detached of this.#all.keys()) detached.stop();
  }
}
