import { test } from 'tap';
import { HedgeBudgets } from '../../src/attempts/hedge-budget.js';
import type { Model } from '../../src/config/types.js';

const model = {} as Model;

/** Spends what it can of so many calls. */
function hedgesOf(budgets: HedgeBudgets, calls: number): number {
  let hedges = 0;
  for (let i = 0; i < calls; i++) {
    budgets.earn(model);
    if (!budgets.hasRoom(model)) continue;
    budgets.spend(model);
    hedges++;
  }
  return hedges;
}

test('one hedge at first, and then one for every ten calls', async (t) => {
  const budgets = new HedgeBudgets();
  t.equal(hedgesOf(budgets, 1), 1);
  t.equal(hedgesOf(budgets, 1000), 100);
});

test('what is saved has a limit', async (t) => {
  const budgets = new HedgeBudgets();
  for (let i = 0; i < 100_000; i++) budgets.earn(model);
  let hedges = 0;
  for (; budgets.hasRoom(model); hedges++) budgets.spend(model);
  t.equal(hedges, 10);
});

test('each model has its own', async (t) => {
  const budgets = new HedgeBudgets();
  budgets.earn(model);
  budgets.spend(model);
  t.notOk(budgets.hasRoom(model));
  t.ok(budgets.hasRoom({} as Model));
});
