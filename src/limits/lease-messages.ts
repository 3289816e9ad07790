import type { PoolKind } from './pool.js';

/*
 * What the owner of the pools, in the primary process, and the holders, in its workers, tell each other: one message for
 * all that happens in a turn of the event loop. Plain JSON. Times are milliseconds of the clock that all processes of the
 * host share.
 */

/** What a worker tells the primary. What is in it is taken in this order. */
export interface HolderMessage {
  readonly type: 'lease-news';
  readonly recalled?: readonly PoolRecalled[];
  /** More was used than was leased: the difference is leased now, whether the primary has it or not. */
  readonly overdrafts?: readonly PoolAmount[];
  /** Leased units that are used up for good. */
  readonly spent?: readonly PoolAmount[];
  /** Units come back unused, or after their minute. */
  readonly returns?: readonly PoolAmount[];
  /** Last: units that come back with them may be what they lack. */
  readonly asks?: readonly PoolAsk[];
}

/** What the primary tells a worker. What is in it is taken in this order. */
export interface OwnerMessage {
  readonly type: 'lease-order';
  readonly slices?: Slices;
  readonly leases?: readonly PoolLease[];
  /** What was leased may be used until then, and from then on only by the primary's word; null for no bound. */
  readonly until?: number | null;
  readonly answers?: readonly PoolAnswer[];
  /** Other workers lack units of these pools: what is idle is to be given back. */
  readonly recalls?: readonly PoolRecall[];
  /** There is less than was leased: so many units are to be given back before any of the pool is used. */
  readonly debts?: readonly PoolAmount[];
  /** Pools of which the worker was denied units, and which have some again. */
  readonly refilled?: readonly string[];
}

/** The first thing that a worker is told, where it has slices of its pools (see `sliceOf`). */
export interface Slices {
  /** Into how many a pool is divided for each slice. */
  readonly sliceDivisor: number;
  /** Until then the units of windows count as used: a worker that has ended may have used them. Null where none has. */
  readonly usedUntil: number | null;
}

/** What is leased of a pool, where that is not the worker's slice of it. A worker that knows the pool takes only the limit from it. */
export interface PoolLease {
  readonly pool: string;
  readonly kind: PoolKind;
  readonly limit: number;
  readonly leased: number;
}

/** A worker lacks units. It has one ask of a pool under way; a later number takes the place of an earlier one. */
export interface PoolAsk {
  readonly pool: string;
  readonly number: number;
  /** Units without which some of its calls cannot go on. */
  readonly need: number;
  /** Fewer than this help none of them. */
  readonly least: number;
  /** Units that it would soon use: `need` or more. */
  readonly want: number;
}

export interface PoolAmount {
  readonly pool: string;
  readonly amount: number;
}

/** Answers a recall, at once. */
export interface PoolRecalled {
  readonly pool: string;
  /** Number of the recall. */
  readonly recall: number;
  /** What was idle, and comes back. */
  readonly amount: number;
  /** When more will be idle here, as far as that is known. */
  readonly nextAt: number | null;
  /** In place of the ask that is under way, which counted on the units that come back. */
  readonly ask: PoolAsk | null;
}

export interface PoolAnswer {
  readonly pool: string;
  /** Number of the ask that is answered; 0 where nobody has asked. */
  readonly number: number;
  readonly granted: number;
  /** Less was granted than was needed: there is no more. */
  readonly short: boolean;
  /** When there will be more, as far as that is known. */
  readonly retryAt: number | null;
  /** Units that no worker has. */
  readonly free: number;
  /** Of a budget that has too little: units that calls at other workers hold, and may yet give back; else 0. */
  readonly inUseElsewhere: number;
  /** Nobody knows whether there is more: the store that says so cannot be reached. */
  readonly isCutOff: boolean;
}

export interface PoolRecall {
  readonly pool: string;
  readonly kind: PoolKind;
  readonly limit: number;
  readonly number: number;
}

/** A list, or nothing in place of an empty one: what is undefined is not in the message's text. */
export function someOf<Item>(items: readonly Item[]): readonly Item[] | undefined {
  return items.length === 0 ? undefined : items;
}
