import type { OwnedPool } from './owned-pool.js';

/** Where the owner of the pools has their units from. It gives each pool its `share`, and takes from what is free. */
export interface ShareSource {
  /**
   * Until when units may be used, in milliseconds of the host's clock; null for no bound. Workers hold to it, too:
   * after it other hosts may count on what this one has.
   */
  readonly until: number | null;
  /** No other host uses units of the pools whose units come back. */
  readonly isUndivided: boolean;
  /** Tells who is to hear of changes. Called once, before anything else. */
  begin(user: ShareUser): void;
  /** Units of a pool may be used now. */
  isValid(pool: OwnedPool, now: number): boolean;
  /** A pool is in use from now on. */
  add(pool: OwnedPool): void;
  /** The pool's `limit` is another. */
  changed(pool: OwnedPool): void;
  /**
   * The asks of a pool want more than is free.
   * @returns true when more is asked for, and `onAnswered` will tell the outcome
   */
  lack(pool: OwnedPool, now: number): boolean;
  /** More is to be asked for than was answered last. */
  isAsking(pool: OwnedPool): boolean;
  /** @returns true when the pool, which nobody uses, can be forgotten; false while it has units to give back */
  forget(pool: OwnedPool): boolean;
  /** Sends what is to be sent. To be called after everything that happens. */
  flush(): void;
  /** To be called about every 100 ms. */
  tick(): void;
}

/** The owner of the pools, as a source of units sees it. */
export interface ShareUser {
  /** The shares of these pools may have changed; what they lacked has come, or will not. */
  onAnswered(pools: readonly OwnedPool[]): void;
  /** Other hosts lack units of these: what workers hold idle is to come back. */
  onWanted(pools: readonly OwnedPool[]): void;
  /** `until` is another. */
  onTerm(): void;
}

/** For a host that has all limits to itself. */
export const undivided: ShareSource = {
  until: null,
  isUndivided: true,
  begin: () => {},
  isValid: () => true,
  add: () => {},
  changed: (pool) => pool.resize(pool.limit),
  lack: () => false,
  isAsking: () => false,
  // What was spent of a pool is to be remembered.
  forget: ({ kind, share, limit }) => kind !== 'budget' || share === limit,
  flush: () => {},
  tick: () => {},
};

/**
 * One source made of two: what is spent comes from `budgets`, all else from `rates`.
 * @param budgets of which all units may be used at any time, since they were reserved for good
 */
export function bothSources(rates: ShareSource, budgets: ShareSource): ShareSource {
  const of = ({ kind }: OwnedPool): ShareSource => (kind === 'budget' ? budgets : rates);
  return {
    get until() {
      return rates.until;
    },
    isUndivided: rates.isUndivided,
    begin(user) {
      rates.begin(user);
      budgets.begin(user);
    },
    isValid: (pool, now) => of(pool).isValid(pool, now),
    add: (pool) => of(pool).add(pool),
    changed: (pool) => of(pool).changed(pool),
    lack: (pool, now) => of(pool).lack(pool, now),
    isAsking: (pool) => of(pool).isAsking(pool),
    forget: (pool) => of(pool).forget(pool),
    flush() {
      rates.flush();
      budgets.flush();
    },
    tick() {
      rates.tick();
      budgets.tick();
    },
  };
}
