import type { Budget, Key } from '../config/types.js';
import type { Pool } from '../limits/pool.js';
import { budgetPool } from '../limits/pools.js';
import { budgetPeriod } from '../usage/budget.js';

/** What a key may spend in a period. */
export interface PeriodBudget {
  readonly pool: Pool;
  /** Unix milliseconds: when the next period begins, with a budget of its own. */
  readonly endsAt: number;
}

const current = new WeakMap<Key, PeriodBudget>();

/**
 * The budget of a key that has one, for the period of a time: made once for each.
 * @param at Unix milliseconds
 */
export function budgetOf(key: Key, budget: Budget, at: number): PeriodBudget {
  const known = current.get(key);
  if (known !== undefined && at < known.endsAt) return known;
  const { id, endsAt } = budgetPeriod(budget.per, at);
  const made = { pool: budgetPool(key.id, budget, id), endsAt };
  current.set(key, made);
  return made;
}
