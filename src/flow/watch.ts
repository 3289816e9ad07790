import { type FaultPlace, type Guarded, handFault } from '../errors.js';

/** Part of a call that time can end or wake: a body that does not come, a stream that stays silent. */
export abstract class Watched implements Guarded {
  watchedBefore: Watched | null = null;
  watchedAfter: Watched | null = null;
  isWatched = false;

  /** About once a second. `now` is in milliseconds of `performance.now()`. */
  abstract onTick(now: number): void;
  abstract onFault(where: FaultPlace, fault: unknown): void;
}

/** Who is to be told of the time. A linked list: every call enters and leaves it, and a set pays for each. */
export class WatchList {
  #first: Watched | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(watched: Watched): void {
    if (watched.isWatched) return;
    watched.isWatched = true;
    watched.watchedAfter = this.#first;
    if (this.#first !== null) this.#first.watchedBefore = watched;
    this.#first = watched;
    this.#size++;
  }

  /** Does nothing for one that is not in the list. */
  remove(watched: Watched): void {
    if (!watched.isWatched) return;
    const { watchedBefore: before, watchedAfter: after } = watched;
    if (before !== null) before.watchedAfter = after;
    else this.#first = after;
    if (after !== null) after.watchedBefore = before;
    watched.isWatched = false;
    watched.watchedBefore = null;
    watched.watchedAfter = null;
    this.#size--;
  }

  tick(now: number): void {
    for (let watched = this.#first; watched !== null; ) {
      const after: Watched | null = watched.watchedAfter;
      try {
        watched.onTick(now);
      } catch (fault) {
        handFault(watched, 'timer', fault);
      }
      // A tick may end its own call, and no other.
      watched = after;
    }
  }
}
