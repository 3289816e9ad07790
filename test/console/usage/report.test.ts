import { test } from 'tap';
import {
  dayValues,
  rowName,
  sortRows,
  sumColumns,
  sumOf,
  type UsageRow,
} from '../../../src/console/usage/report.js';
import { noTotals } from '../../../src/usage/sums.js';

const sums = { ...noTotals(), mediaSeconds: 0, costUsd: 0 };
const row = (more: Partial<UsageRow>): UsageRow => ({ ...sums, ...more });

test('a row is named by its labels in one order, whatever they were asked for in', async (t) => {
  const one = row({ day: '2026-11-22', key: 'team-a', model: 'sim-text' });
  t.equal(rowName(one, ['model', 'day']), 'day:2026-11-22 model:sim-text');
  t.equal(rowName(one, ['key', 'model', 'day']), 'day:2026-11-22 model:sim-text key:team-a');
  t.equal(rowName(row({ key: null }), ['key']), 'key:');
});

test('every column has its number in what the ledger tells', async (t) => {
  const one = row({ upstreamErrors: 3, refused: 2, characters: 7, costUsd: 0.25 });
  t.same(
    sumColumns.map(([name]) => sumOf(one, name)),
    [0, 3, 2, 0, 0, 0, 0, 0, 7, 0.25],
  );
});

test('rows are sorted by a column, equal ones as they were', async (t) => {
  const rows = [
    row({ model: 'b', calls: 2 }),
    row({ model: null, calls: 10 }),
    row({ model: 'a', calls: 2 }),
  ];
  const models = (of: readonly UsageRow[]) => of.map(({ model }) => model);
  t.same(models(sortRows(rows, { key: 'calls', descending: true })), [null, 'b', 'a']);
  t.same(models(sortRows(rows, { key: 'calls', descending: false })), ['b', 'a', null]);
  t.same(models(sortRows(rows, { key: 'model', descending: false })), ['a', 'b', null]);
  t.same(models(rows), ['b', null, 'a'], 'the rows themselves stay');
});

test('each day has its value, and a day without calls is there', async (t) => {
  const days = ['2026-11-20', '2026-11-21', '2026-11-22'];
  const rows = [
    row({ day: '2026-11-20', calls: 2, inputTokens: 10, outputTokens: 5, costUsd: 0.5 }),
    row({ day: '2026-11-20', calls: 1, inputTokens: 1, outputTokens: 2, costUsd: 0.25 }),
    row({ day: '2026-11-22', calls: 7 }),
    row({ day: '2026-12-01', calls: 9 }),
  ];
  const parts = (measure: 'cost' | 'tokens' | 'calls') =>
    dayValues(rows, days, measure).map(({ parts }) => parts);
  t.same(parts('calls'), [[3], [0], [7]]);
  t.same(parts('cost'), [[0.75], [0], [0]]);
  t.same(parts('tokens'), [
    [11, 7],
    [0, 0],
    [0, 0],
  ]);
  t.same(
    dayValues(rows, days, 'cost').map(({ day }) => day),
    days,
  );
});
