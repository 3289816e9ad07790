import type { HeldPool } from './held-pool.js';
import type { Pool } from './pool.js';

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

/** A pool as a worker knows it. */
export function poolViewOf(pool: Pool, held: HeldPool, now: number): PoolView {
  const { limit } = pool;
  held.collect(now);
  const used = held.inUse + (held.window?.total ?? 0);
  const freeElsewhere = held.asked?.freeElsewhere ?? null;
  const known = freeElsewhere === null ? limit : held.available + freeElsewhere;
  const remaining = Math.max(0, Math.min(known, limit - used));
  if (remaining >= limit) return untouched(pool);
  const lastAt = held.window?.lastAt() ?? null;
  const resetMs = lastAt === null ? held.retryAfterMs(1, now) : Math.max(1, Math.ceil(lastAt - now));
  return { limit, remaining, resetMs };
}

/** The view of which the least share remains: what a caller meets first. The first of two with the same. */
export function tighter(one: PoolView | null, other: PoolView): PoolView {
  return one === null || other.remaining * one.limit < one.remaining * other.limit ? other : one;
}
