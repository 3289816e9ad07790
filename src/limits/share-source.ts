import type { OwnedPool } from './owned-pool.js';

/** Source of the units of the owner of the pools. Gives each pool its `share`, and takes back from its free units. */
export interface ShareSource {
  /**
   * Until when units may be used, in milliseconds of the host's clock. Null for no bound. It also binds workers, since
   * afterwards other hosts may use what this one has.
   */
  readonly until: number | null;
  /** Whether no other host uses units of the pools, except for budgets. */
  readonly isUndivided: boolean;
  /** Sets the user to notify of changes. Called once, before anything else. */
  begin(user: ShareUser): void;
  /** Whether units of a pool may be used now. */
  isValid(pool: OwnedPool, now: number): boolean;
  /** Called when a pool comes into use. */
  add(pool: OwnedPool): void;
  /** Called when the `limit` of a pool has changed. */
  changed(pool: OwnedPool): void;
  /**
   * Called when the requests for a pool want more than is free.
   * @returns whether more is requested, so that `onAnswered` will be called
   */
  lack(pool: OwnedPool, now: number): boolean;
  /** Whether more has to be requested than in the last request. */
  isAsking(pool: OwnedPool): boolean;
  /** @returns whether the pool, which is unused, can be forgotten; false while it has units to return */
  forget(pool: OwnedPool): boolean;
  /** Sends what is pending. To be called after every change. */
  flush(): void;
  /** To be called about every 100 ms. */
  tick(): void;
}

/** The owner of the pools, as seen by a source of units. */
export interface ShareUser {
  /** Called when the shares of these pools may have changed. What they lacked has arrived, or will not arrive. */
  onAnswered(pools: readonly OwnedPool[]): void;
  /** Called when other hosts lack units of these pools. What is idle at workers should be returned. */
  onWanted(pools: readonly OwnedPool[]): void;
  /** Called when `until` has changed. */
  onTerm(): void;
}

/** For a host that has all limits to itself. */
export const unsharedSource: ShareSource = {
  until: null,
  isUndivided: true,
  begin: () => {},
  isValid: () => true,
  add: () => {},
  changed: (pool) => pool.resize(pool.limit),
  lack: () => false,
  isAsking: () => false,
  // What was spent of a budget must be remembered.
  forget: ({ kind, share, limit }) => kind !== 'budget' || share === limit,
  flush: () => {},
  tick: () => {},
};

/**
 * Combines two sources: `budgets` for budgets, `rates` for all other pools.
 * @param budgets its units may be used at any time, since they are reserved for good
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
