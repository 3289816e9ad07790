import type { Budget, Key, Model } from '../config/types.js';
import type { Pool } from '../limits/pool.js';
import { budgetPool } from '../limits/pools.js';
import { budgetPeriod } from '../usage/budget.js';

/** What may be spent in a period. */
export interface PeriodBudget {
  readonly pool: Pool;
  /** Unix milliseconds: when the next period begins, with a budget of its own. */
  readonly endsAt: number;
}

interface OwnedBudget extends PeriodBudget {
  readonly owner: string;
}

const current = new WeakMap<Budget, OwnedBudget>();

/** Whether anybody has set a budget for the calls of a key for a model. */
export function hasBudget({ budget, groupBudgets }: Key, model: Model): boolean {
  return budget !== null || groupBudgets.length > 0 || model.budget !== null;
}

/**
 * All budgets that pay for a call, each of them in full: its key's, those of the key's groups, its model's.
 * @param at Unix milliseconds
 */
export function budgetsOf(key: Key, model: Model, at: number): readonly PeriodBudget[] {
  const budgets: PeriodBudget[] = [];
  if (key.budget !== null) budgets.push(budgetOf(`key:${key.id}`, key.budget, at));
  for (const { group, budget } of key.groupBudgets) budgets.push(budgetOf(`group:${group}`, budget, at));
  if (model.budget !== null) budgets.push(budgetOf(`model:${model.name}`, model.budget, at));
  return budgets;
}

/**
 * The budget of an owner for the period of a time: made once for each.
 * @param owner `key:team-a`, `group:default` or `model:gpt-x`
 * @param at Unix milliseconds
 */
export function budgetOf(owner: string, budget: Budget, at: number): PeriodBudget {
  const known = current.get(budget);
  if (known !== undefined && at < known.endsAt && known.owner === owner) return known;
  const { id, endsAt } = budgetPeriod(budget.per, at);
  const made = { owner, pool: budgetPool(owner, budget, id), endsAt };
  current.set(budget, made);
  return made;
}
