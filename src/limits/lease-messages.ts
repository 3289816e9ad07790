import type { PoolKind } from './pool.js';

/*
 * The messages between the owner of the pools in the primary and the holders in its workers: one message for everything
 * that happens in a turn of the event loop. Plain JSON. Times are milliseconds of the clock that all processes of the
 * host share.
 */

/** A message from a worker to the primary. Its parts are handled in this order. */
export interface HolderMessage {
  readonly type: 'lease-news';
  readonly recalled?: readonly PoolRecalled[];
  /**
   * Units that were used beyond what was leased. They count as leased from now on, whether the primary has them or not.
   */
  readonly overdrafts?: readonly PoolAmount[];
  /** Leased units that are used up for good. */
  readonly spent?: readonly PoolAmount[];
  /** Units that are returned unused, or after their minute. */
  readonly returns?: readonly PoolAmount[];
  /** Last, since the units that are returned with them may be what they lack. */
  readonly asks?: readonly PoolAsk[];
}

/** A message from the primary to a worker. Its parts are handled in this order. */
export interface OwnerMessage {
  readonly type: 'lease-order';
  readonly slices?: Slices;
  readonly leases?: readonly PoolLease[];
  /** Until when leased units may be used. Afterwards the worker needs the primary's permission. Null for no bound. */
  readonly until?: number | null;
  readonly answers?: readonly PoolAnswer[];
  /** Pools of which other workers lack units. Idle units are to be returned. */
  readonly recalls?: readonly PoolRecall[];
  /** Units to return before any of the pool is used, since more was leased than there is. */
  readonly debts?: readonly PoolAmount[];
  /** Pools that have units again after the worker was denied some. */
  readonly refilled?: readonly string[];
}

/** The first message to a worker that has slices of its pools (see `sliceOf`). */
export interface Slices {
  /** Number of parts into which a pool is divided for each slice. */
  readonly sliceDivisor: number;
  /**
   * Until when the units of windows count as used, since a worker that has ended may have used them. Null if none has.
   */
  readonly usedUntil: number | null;
}

/** What is leased of a pool if that is not the worker's slice. A worker that knows the pool only uses the limit. */
export interface PoolLease {
  readonly pool: string;
  readonly kind: PoolKind;
  readonly limit: number;
  readonly leased: number;
}

/** A request for units. At most one per pool is pending: a later number replaces an earlier one. */
export interface PoolAsk {
  readonly pool: string;
  readonly number: number;
  /** Units without which some of its calls cannot continue. */
  readonly need: number;
  /** A smaller amount helps none of them. */
  readonly least: number;
  /** Units that it would soon use: `need` or more. */
  readonly want: number;
}

export interface PoolAmount {
  readonly pool: string;
  readonly amount: number;
}

/** The immediate reply to a recall. */
export interface PoolRecalled {
  readonly pool: string;
  /** Number of the recall. */
  readonly recall: number;
  /** Idle units, which are returned. */
  readonly amount: number;
  /** When more units will be idle here, or null if unknown. */
  readonly nextAt: number | null;
  /** Replaces the pending request, which relied on the returned units. */
  readonly ask: PoolAsk | null;
}

export interface PoolAnswer {
  readonly pool: string;
  /** Number of the answered request. 0 if there was none. */
  readonly number: number;
  readonly granted: number;
  /** Whether less was granted than was needed, since there is no more. */
  readonly short: boolean;
  /** When there will be more, or null if unknown. */
  readonly retryAt: number | null;
  /** Units that no worker has. */
  readonly free: number;
  /** Units of an exhausted budget that calls at other workers hold and may still return. Otherwise 0. */
  readonly inUseElsewhere: number;
  /** Whether it is unknown if more units exist, since the store that decides cannot be reached. */
  readonly isCutOff: boolean;
}

export interface PoolRecall {
  readonly pool: string;
  readonly kind: PoolKind;
  readonly limit: number;
  readonly number: number;
}

/** Returns the list, or undefined if it is empty, so that the message's JSON omits it. */
export function omitEmpty<Item>(items: readonly Item[]): readonly Item[] | undefined {
  return items.length === 0 ? undefined : items;
}
