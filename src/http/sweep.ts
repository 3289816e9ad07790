import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type FaultPlace, type Guarded, handFault } from '../errors.js';

/** What is looked at every so often for as long as it waits: a body that does not come, a client that does not read. */
export abstract class Swept implements Guarded {
  sweptBefore: Swept | null = null;
  sweptAfter: Swept | null = null;
  isSwept = false;

  /** @param now milliseconds of `performance.now()` */
  abstract onSweep(now: number): void;
  abstract onFault(where: FaultPlace, fault: unknown): void;
}

/** What is due at every sweep. A doubly linked list, since every call enters and leaves it and a `Set` costs more. */
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

  /** Does nothing for one that is not in the list. */
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
      // It may remove itself, and no other.
      member = after;
    }
  }
}

/** Off-heap bytes that are worth a collection. */
const worthBytes = 16 * 1024 * 1024;
/**
 * Sweeps without a request before a collection is made, which stops everything for some milliseconds: one soon, and
 * one when what is kept for the next request has been let go of as well.
 */
const soonSweeps = 3;
const lateSweeps = 9;

/**
 * Gives memory back after a peak. The bodies of requests lie outside of V8's heap, and V8, which collects when its
 * heap grows, sees no reason to let go of them once the traffic has gone: a worker would keep its peak for hours.
 * @param served how many requests have come since the start
 * @returns the sweep, to be called about once a second
 */
export function createMemorySweep(served: () => number): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let before = 0;
  let quiet = lateSweeps;
  return () => {
    const now = served();
    if (now !== before) {
      before = now;
      quiet = 0;
    } else if (quiet < lateSweeps) {
      quiet++;
      const due = quiet === soonSweeps || quiet === lateSweeps;
      if (due && process.memoryUsage().external > worthBytes) collect();
    }
  };
}
