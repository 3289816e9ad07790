import type { Admission } from './admission.js';
import type { Decision, Pending } from './decision.js';
import type { HeldPool, HeldUnits } from './held-pool.js';
import type { Demand, Pool } from './kinds.js';
import type { HolderMessage, OwnerMessage } from './messages.js';
import type { PoolView } from './pool-view.js';

export interface LeaseHolderOptions {
  /** Milliseconds of a monotonic clock that all processes of the host share. Never a remembered value. */
  readonly now: () => number;
  /** Sends to the primary, in order. Must not throw, nor call the holder. */
  readonly send: (message: HolderMessage) => void;
  /**
   * Runs something once the present turn of the event loop is over, so that all that happens in it is one message of each
   * type. At once unless given.
   */
  readonly defer?: (run: () => void) => void;
  /**
   * What becomes of a call that the primary does not answer in time: `open` lets it in, beyond the limits, but for money;
   * `closed`, the default, denies it as `unknown`.
   */
  readonly whenUnknown?: () => 'open' | 'closed';
  /** Calls that may wait for units of one pool. Default 1,000. */
  readonly maxWaiting?: number;
  /** Milliseconds that a call waits at most. Default 1,000. */
  readonly maxWaitMs?: number;
}

/** A worker's side of all limits: it holds leased units and decides calls by them. */
export interface LeaseHolder {
  /**
   * Takes the units of all demands where this worker has them, as it has for nearly every call.
   * @param demands each pool once
   * @param found what was found for calls with demands of the same pools before: one array for all of them, empty at
   * first, which the holder fills
   * @param now by the holder's clock, looked at just now
   * @returns null where it has not: `acquire` tells more
   */
  take(demands: readonly Demand[], found: HeldPool[], now: number): Admission | null;
  /**
   * As `take`, and waits for units, or says why not.
   * @param onDecided called once, later, when the result is `pending` and is not cancelled
   */
  acquire(demands: readonly Demand[], onDecided: (decision: Decision) => void): Decision | Pending;
  /** Takes the primary's message. */
  receive(message: OwnerMessage): void;
  /** The primary is gone for good: what is held may be used up, all else is denied. */
  disconnect(): void;
  /** Denies who has waited long enough, and sends idle units back. To be called about every 100 ms. */
  tick(): void;
  /** Sends back all that is not in use: the worker is about to end. */
  close(): void;
  /** How often it has ticked. */
  readonly ticks: number;
  /** What a caller may be told of a limit, as it was a moment ago. */
  peek(pool: Pool): PoolView;
  /** The pools of which this worker knows anything. */
  inspect(): HeldUnits[];
}
