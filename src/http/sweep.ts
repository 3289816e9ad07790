import { type FaultPlace, type Guarded, handFault } from '../errors.js';

/** Something that is checked periodically while it waits, such as for a body to arrive or a client to read. */
export abstract class Swept implements Guarded {
  sweptBefore: Swept | null = null;
  sweptAfter: Swept | null = null;
  isSwept = false;

  /** @param now milliseconds of `performance.now()` */
  abstract onSweep(now: number): void;
  abstract onFault(where: FaultPlace, fault: unknown): void;
}

/** The members of a sweep. A doubly linked list, since every call is added and removed, and a `Set` costs more. */
export class SweepList {
  #first: Swept | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(member: Swept): void {
    if (member.isSwept) return;
    member.isSwept = true;
    member.sweptAfter = this.#first;
    if (this.#first !== null) this.#first.sweptBefore = member;
    this.#first = member;
    this.#size++;
  }

  /** No-op for one that is not in the list. */
  remove(member: Swept): void {
    if (!member.isSwept) return;
    const { sweptBefore: before, sweptAfter: after } = member;
    if (before !== null) before.sweptAfter = after;
    else this.#first = after;
    if (after !== null) after.sweptBefore = before;
    member.isSwept = false;
    member.sweptBefore = null;
    member.sweptAfter = null;
    this.#size--;
  }

  sweep(now: number): void {
    for (let member = this.#first; member !== null; ) {
      const after: Swept | null = member.sweptAfter;
      try {
        member.onSweep(now);
      } catch (fault) {
        handFault(member, 'timer', fault);
      }
      // A member may remove itself, but no other.
      member = after;
    }
  }
}
