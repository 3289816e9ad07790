import { type FaultPlace, type Guarded, handFault } from '../errors.js';

/** What the server looks after every few seconds, for as long as it waits for its client. */
export abstract class Tended implements Guarded {
  tendedBefore: Tended | null = null;
  tendedAfter: Tended | null = null;
  isTended = false;

  abstract tend(): void;
  abstract onFault(where: FaultPlace, fault: unknown): void;
}

/** Who is to be looked after. A linked list, which costs nothing to enter and to leave. */
export class TendList {
  #first: Tended | null = null;

  add(tended: Tended): void {
    if (tended.isTended) return;
    tended.isTended = true;
    tended.tendedAfter = this.#first;
    if (this.#first !== null) this.#first.tendedBefore = tended;
    this.#first = tended;
  }

  /** Does nothing for one that is not in the list. */
  remove(tended: Tended): void {
    if (!tended.isTended) return;
    const { tendedBefore: before, tendedAfter: after } = tended;
    if (before !== null) before.tendedAfter = after;
    else this.#first = after;
    if (after !== null) after.tendedBefore = before;
    tended.isTended = false;
    tended.tendedBefore = null;
    tended.tendedAfter = null;
  }

  tend(): void {
    for (let tended = this.#first; tended !== null; ) {
      const after: Tended | null = tended.tendedAfter;
      try {
        tended.tend();
      } catch (fault) {
        handFault(tended, 'timer', fault);
      }
      // It may leave the list, and takes no other with it.
      tended = after;
    }
  }
}
