import type { Demand, Pool } from './pool.js';

/** What becomes of a call's demands. */
export type Decision = Admission | Denial;

/** The demands cannot be met, and none of them was taken. */
export interface Denial {
  readonly outcome: 'denied';
  /** The pool that has too little. */
  readonly pool: Pool;
  /**
   * `unknown`: there may be more, but nobody has said so in time: the primary did not answer or is gone, or the store
   * behind it cannot be reached.
   */
  readonly reason: 'exhausted' | 'unknown';
  /** Milliseconds until another try may succeed, as far as that is known; null where none will: a budget is used up. */
  readonly retryAfterMs: number | null;
}

/** The one of two denials that a call hears: what is known before what is not, then the longer wait. */
export function graver(one: Denial | null, other: Denial): Denial {
  if (one === null) return other;
  if (one.reason !== other.reason) return one.reason === 'unknown' ? other : one;
  const waitMs = ({ retryAfterMs }: Denial): number => retryAfterMs ?? Number.POSITIVE_INFINITY;
  return waitMs(other) > waitMs(one) ? other : one;
}

/** The demands are not decided yet. */
export interface Pending {
  readonly outcome: 'pending';
  /** Gives up: nothing is taken, nobody is called back. Does nothing once the decision was told. */
  cancel(): void;
}

/** A call that is let in: it holds the units of all its demands. */
export interface Admission {
  readonly outcome: 'admitted';
  readonly demands: readonly Demand[];
  /**
   * Tells how much of a window the call really used, once: what it reserved beyond that is available again, and what it
   * used beyond what it reserved is taken in addition, even if there is none. Does nothing the second time, for a pool
   * that was not demanded, and for slots.
   * @param actual 0 or more; a part of a unit counts as a whole one
   */
  settle(pool: Pool, actual: number): void;
  /** The same for the pool that was demanded at an index. */
  settleAt(index: number, actual: number): void;
  /** Frees the slots alone: what the call has used is not known yet. Does nothing the second time. */
  freeSlots(): void;
  /** Frees the slots, and leaves all that was not settled as it was reserved. Does nothing the second time. */
  release(): void;
  /** The call does not take place: everything goes back that was not settled or released before. */
  undo(): void;
}
