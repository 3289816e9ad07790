import { test } from 'tap';
import {
  type BudgetWindow,
  budgetUse,
  budgetWindow,
  spendingPath,
  windowsOf,
} from '../../../src/console/keys/budget.js';
import { budgetPeriod, dayOf } from '../../../src/usage/budget.js';

const dayMs = 86_400_000;

test('the windows of budgets are those that the gateway counts by', async (t) => {
  const start = Date.parse('2023-12-25T00:00:00Z');
  let compared = 0;
  for (let day = 0; day < 800; day++) {
    for (const at of [start + day * dayMs, start + day * dayMs + dayMs - 1]) {
      for (const per of ['day', 'week', 'month'] as const) {
        const { startsAt, endsAt } = budgetPeriod(per, at);
        const expected: BudgetWindow = { per, from: dayOf(startsAt), to: dayOf(endsAt - 1), endsAt };
        const window = budgetWindow(per, at);
        if (JSON.stringify(window) !== JSON.stringify(expected)) t.same(window, expected, `${per} of ${at}`);
        compared++;
      }
    }
  }
  t.equal(compared, 4800);
});

test('usage is asked once for each window, not for each key', async (t) => {
  const now = Date.parse('2026-11-22T09:47:00Z');
  const windows = windowsOf(
    [
      { budget: { usd: 1, per: 'month' } },
      { budget: null },
      { budget: { usd: 2, per: 'day' } },
      { budget: { usd: 3, per: 'month' } },
    ],
    now,
  );
  t.same(windows.map(spendingPath), [
    '/usage?by=key&from=2026-11-01&to=2026-11-30',
    '/usage?by=key&from=2026-11-22&to=2026-11-22',
  ]);
});

test('what is used of a budget and what is left', async (t) => {
  const key = { id: 'team-a', budget: { usd: 10, per: 'day' as const } };
  const rows = [
    { key: null, costUsd: 100 },
    { key: 'team-a', costUsd: 2.5 },
    { key: 'team-b', costUsd: 12 },
  ];
  t.same(budgetUse(key, { rows, complete: true }), { used: 2.5, left: 7.5, share: 0.25 });
  t.same(budgetUse({ ...key, id: 'team-b' }, { rows, complete: true }), { used: 12, left: 0, share: 1.2 });
  t.same(budgetUse({ ...key, id: 'team-c' }, { rows, complete: true }), { used: 0, left: 10, share: 0 });
  t.equal(
    budgetUse({ ...key, id: 'team-c' }, { rows, complete: false }),
    null,
    'it may be among what is left out',
  );
  t.equal(budgetUse({ ...key, budget: null }, { rows, complete: true }), null);
});
