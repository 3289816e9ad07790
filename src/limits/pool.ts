/** What is counted: requests and tokens of any sliding minute, calls at once, money that is spent once and for all. */
export type PoolKind = 'requests' | 'tokens' | 'concurrent' | 'budget';

/** One limit: what may be used of it, by all workers together. */
export interface Pool {
  /** Unique among all pools, and the same in every process: `key:team-a:requests`. */
  readonly name: string;
  readonly kind: PoolKind;
  /** Units: requests, tokens, calls at once, billionths of a dollar. A whole number. */
  readonly limit: number;
  /**
   * A place where `HeldPools` remembers the `HeldPool` of this name: to look a name up with each call means to touch memory
   * that is in no cache any more. No one else reads it.
   */
  held?: object | null;
}

/** So many units of a pool. */
export interface Demand {
  readonly pool: Pool;
  /** A whole number, 0 or more. */
  readonly amount: number;
}

/** What a caller may be told of a limit. */
export interface PoolView {
  readonly limit: number;
  /** An estimate: what this worker has, and what was free at the primary when that last spoke. From 0 to `limit`. */
  readonly remaining: number;
  /** Milliseconds until the pool is full again, as far as this worker knows; 0 when it is. */
  readonly resetMs: number;
}

/** A pool of which a worker knows nothing: it has not used any lately. */
export function untouched({ limit }: Pool): PoolView {
  return { limit, remaining: limit, resetMs: 0 };
}

/** Milliseconds after which a used unit of each kind may be used again; null where time does not bring it back. */
export const windowMsOf: Readonly<Record<PoolKind, number | null>> = {
  requests: 60_000,
  tokens: 60_000,
  concurrent: null,
  budget: null,
};

/** @returns true where whoever uses units of the pool gives them back, and time does not */
export function isGivenBack({ kind }: Pool): boolean {
  return kind === 'concurrent';
}

/** Of a pool of which a worker's slice would be less than this it has none, but asks the primary for what it lacks. */
const leastSlice = 4;

/**
 * A worker's slice of a pool: units that are leased to it from the start, without a word. So calls that are far from
 * their limits, as most are, cost no message, however many keys they belong to.
 * @param sliceDivisor into how many a pool is divided for the worker's slice; 0 for a worker that has no slices
 */
export function sliceOf({ kind, limit }: Pool, sliceDivisor: number): number {
  if (sliceDivisor === 0 || kind === 'budget') return 0;
  const slice = Math.floor(limit / sliceDivisor);
  return slice < leastSlice ? 0 : slice;
}
