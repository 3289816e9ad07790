import { type FaultPlace, type Guarded, handFault } from '../errors.js';

/** Something that is checked periodically while it waits, such as for a body to arrive or a client to read. */
export abstract class SweepMember implements Guarded {
  previousInSweep: SweepMember | null = null;
  nextInSweep: SweepMember | null = null;
  isInSweep = false;

  /** @param now milliseconds of `performance.now()` */
  abstract onSweep(now: number): void;
  abstract onFault(where: FaultPlace, fault: unknown): void;
}

/** The members of a sweep. A doubly linked list, since every call is added and removed, and a `Set` costs more. */
export class SweepList {
  #first: SweepMember | null = null;

  add(member: SweepMember): void {
    if (member.isInSweep) return;
    member.isInSweep = true;
    member.nextInSweep = this.#first;
    if (this.#first !== null) this.#first.previousInSweep = member;
    this.#first = member;
  }

  /** No-op for one that is not in the list. */
  remove(member: SweepMember): void {
    if (!member.isInSweep) return;
    const { previousInSweep: before, nextInSweep: after } = member;
    if (before !== null) before.nextInSweep = after;
    else this.#first = after;
    if (after !== null) after.previousInSweep = before;
    member.isInSweep = false;
    member.previousInSweep = null;
    member.nextInSweep = null;
  }

  sweep(now: number): void {
    for (let member = this.#first; member !== null; ) {
      const after: SweepMember | null = member.nextInSweep;
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
