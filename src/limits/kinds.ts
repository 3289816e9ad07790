/** How the units of a pool are used: `window` in any sliding minute, `slots` at once, `spend` once and for all. */
export type PoolKind = 'window' | 'slots' | 'spend';

/** One limit: what may be used of it, by all workers together. */
export interface Pool {
  /** Unique among all pools, and the same in every process: `key:team-a:requests`. */
  readonly name: string;
  readonly kind: PoolKind;
  /** Units: requests, tokens, calls at once, billionths of a dollar. A whole number. */
  readonly limit: number;
}

/** So many units of a pool. */
export interface Demand {
  readonly pool: Pool;
  /** A whole number, 0 or more. */
  readonly amount: number;
}

/** What sets a kind of pool apart from the others. */
export interface KindRules {
  /** Milliseconds after which a used unit may be used again; null where time does not bring it back. */
  readonly coolMs: number | null;
  /** Whoever uses a unit gives it back. */
  readonly isGivenBack: boolean;
}

/** Every kind of pool. */
export const kinds: Readonly<Record<PoolKind, KindRules>> = {
  window: { coolMs: 60_000, isGivenBack: false },
  slots: { coolMs: null, isGivenBack: true },
  spend: { coolMs: null, isGivenBack: false },
};

/** @returns true where whoever uses units of the pool gives them back, and time does not */
export function isGivenBack(pool: Pool): boolean {
  return kinds[pool.kind].isGivenBack;
}
