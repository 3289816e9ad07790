import type { OwnedPool } from './owned-pool.js';
import type { ShareSource } from './share-source.js';

/**
 * One source made of two: what is spent comes from `budgets`, all else from `rates`.
 * @param budgets of which all units may be used at any time, since they were reserved for good
 */
export function bothSources(rates: ShareSource, budgets: ShareSource): ShareSource {
  const of = ({ kind }: OwnedPool): ShareSource => (kind === 'spend' ? budgets : rates);
  return {
    get until() {
      return rates.until;
    },
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
