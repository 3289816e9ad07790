/** What is counted: requests or tokens within a sliding minute, concurrent calls, or money, which is spent for good. */
export type PoolKind = 'requests' | 'tokens' | 'concurrent' | 'budget';

/** One limit: what all workers together may use. */
export interface Pool {
  /** Unique among all pools, and the same in every process: `key:team-a:requests`. */
  readonly name: string;
  readonly kind: PoolKind;
  /** A whole number of units: requests, tokens, concurrent calls, or billionths of a dollar. */
  readonly limit: number;
  /**
   * Cache of the `HeldPool` of this name. A lookup by name for each call would touch memory that is in no CPU cache any
   * more. Only `HeldPools` uses it.
   */
  held?: object | null;
}

/** A number of units of a pool. */
export interface Demand {
  readonly pool: Pool;
  /** A whole number, 0 or more. */
  readonly amount: number;
}

/** What a caller may be told of a limit. */
export interface PoolView {
  readonly limit: number;
  /** An estimate: what this worker has, plus what was free at the primary's last message. From 0 to `limit`. */
  readonly remaining: number;
  /** Milliseconds until the pool is full again, as far as this worker knows. 0 if it is full. */
  readonly resetMs: number;
}

/** Returns the view of a pool that this worker has not used recently. */
export function unusedView({ limit }: Pool): PoolView {
  return { limit, remaining: limit, resetMs: 0 };
}

/** Milliseconds after which used units of each kind may be used again. Null if time does not free them. */
export const windowMsOf: Readonly<Record<PoolKind, number | null>> = {
  requests: 60_000,
  tokens: 60_000,
  concurrent: null,
  budget: null,
};

/** @returns whether units of the pool become free when their user returns them, not with time */
export function isReturnable({ kind }: Pool): boolean {
  return kind === 'concurrent';
}

/** A worker has no slice of a pool if it would be smaller than this. It requests units from the primary instead. */
const leastSlice = 4;

/**
 * Returns the size of a worker's slice of a pool: units that are leased to it from the start, without a message. Most
 * calls are far from their limits and so cost no message, whatever the number of keys.
 * @param sliceDivisor number of parts into which a pool is divided for the slice. 0 for a worker without slices
 */
export function sliceOf({ kind, limit }: Pool, sliceDivisor: number): number {
  if (sliceDivisor === 0 || kind === 'budget') return 0;
  const slice = Math.floor(limit / sliceDivisor);
  return slice < leastSlice ? 0 : slice;
}
