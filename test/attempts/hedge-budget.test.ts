import { test } from 'tap';
import { HedgeBudget, HedgeBudgets } from '../../src/attempts/hedge-budget.js';
import type { Model } from '../../src/config/types.js';

/** Spends what it can of so many calls. */
function hedgesOf(budget: HedgeBudget, calls: number): number {
  let hedges = 0;
  for (let i = 0; i < calls; i++) {
    budget.earn();
    if (!budget.isFree) continue;
    budget.spend();
    hedges++;
  }
  return hedges;
}

test('one hedge at first, and then one for every ten calls', async (t) => {
  const budget = new HedgeBudget();
  t.equal(hedgesOf(budget, 1), 1);
  t.equal(hedgesOf(budget, 1000), 100);
});

test('what is saved has a limit', async (t) => {
  const budget = new HedgeBudget();
  for (let i = 0; i < 100_000; i++) budget.earn();
  let hedges = 0;
  for (; budget.isFree; hedges++) budget.spend();
  t.equal(hedges, 10);
});

test('each model has its own', async (t) => {
  const budgets = new HedgeBudgets();
  const [a, b] = [{} as Model, {} as Model];
  t.equal(budgets.of(a), budgets.of(a));
  t.not(budgets.of(a), budgets.of(b));
});
