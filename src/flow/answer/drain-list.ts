import { type Guarded, guard } from '../../errors.js';

/** Calls of a worker, and of one key, whose upstreams are read on for at once; those of others are cancelled. */
const mostAtOnce = 500;
const mostOfKey = 50;
/** An upstream is read on for so long at most, in milliseconds. */
const longestMs = 10_000;

/** Reading on for a call. */
export interface Draining extends Guarded {
  readonly keyId: string;
  /** Reads no more, and accounts for the call by what is known. */
  stop(): void;
}

/** The calls of a worker whose clients have left, and whose upstreams are read on for. */
export class DrainList {
  /** Each with what stops it when it has taken too long. */
  readonly #drains = new Map<Draining, NodeJS.Timeout>();
  readonly #ofKeys = new Map<string, number>();
  #isClosed = false;

  hasRoom(keyId: string): boolean {
    return !this.#isClosed && this.#drains.size < mostAtOnce && (this.#ofKeys.get(keyId) ?? 0) < mostOfKey;
  }

  /** Takes in what is stopped once it has taken too long, unless `remove` takes it out before. */
  add(drain: Draining): void {
    const stop = guard('timer', drain, () => drain.stop());
    this.#drains.set(drain, setTimeout(stop, longestMs));
    this.#ofKeys.set(drain.keyId, (this.#ofKeys.get(drain.keyId) ?? 0) + 1);
  }

  remove(drain: Draining): void {
    const timer = this.#drains.get(drain);
    if (timer === undefined) return;
    clearTimeout(timer);
    this.#drains.delete(drain);
    const left = (this.#ofKeys.get(drain.keyId) ?? 1) - 1;
    if (left === 0) this.#ofKeys.delete(drain.keyId);
    else this.#ofKeys.set(drain.keyId, left);
  }

  /** Cancels them all; from now on none is added. */
  close(): void {
    this.#isClosed = true;
    for (const drain of this.#drains.keys()) drain.stop();
  }
}
