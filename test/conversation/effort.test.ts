import { test } from 'tap';
import { effortOfBudget, effortOfWord } from '../../src/conversation/effort.js';

test('a budget stands for an effort', async (t) => {
  const cases: [number, string | null][] = [
    [-1, null],
    [0, 'none'],
    [1, 'minimal'],
    [1024, 'minimal'],
    [1025, 'low'],
    [4096, 'low'],
    [8192, 'medium'],
    [12_288, 'medium'],
    [16_384, 'high'],
    [20_000, 'high'],
    [20_001, 'xhigh'],
  ];
  for (const [budget, effort] of cases) t.equal(effortOfBudget(budget), effort, String(budget));
});

test('a word stands for an effort in any case', async (t) => {
  t.equal(effortOfWord('HIGH'), 'high');
  t.equal(effortOfWord('max'), 'max');
  t.equal(effortOfWord('THINKING_LEVEL_UNSPECIFIED'), null);
});
