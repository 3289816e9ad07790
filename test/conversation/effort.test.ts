import { test } from 'tap';
import { effortOfBudget, effortOfWord, knownEffort, mapEffort } from '../../src/conversation/effort.js';

test('a budget stands for an effort', async (t) => {
  const cases: [number, string | null][] = [
    [-1, null],
    [0, 'none'],
    [1, 'low'],
    [1024, 'low'],
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
  t.equal(effortOfWord('Ultra'), 'ultra', 'a word that only some vendor knows');
  t.equal(effortOfWord(''), null);
  t.equal(effortOfWord('x'.repeat(64)), 'x'.repeat(64));
  t.equal(effortOfWord('x'.repeat(65)), null);
});

test('only the words of the neutral form are known efforts', async (t) => {
  t.equal(knownEffort('xhigh'), 'xhigh');
  t.equal(knownEffort('ultra'), null);
  t.equal(knownEffort('constructor'), null);
  t.equal(knownEffort(null), null);
});

test('an effort is put into the words of a target, and all else stays', async (t) => {
  const words = new Map([
    ['xhigh', 'high'],
    ['ultra', 'max'],
  ]);
  const reasoning = { effort: 'ultra', budget: 5, show: true, summary: 'auto' };
  t.strictSame(mapEffort(words, reasoning), { ...reasoning, effort: 'max' });
  t.equal(mapEffort(words, null), null);
  for (const effort of ['high', 'constructor', null]) {
    const other = { ...reasoning, effort };
    t.equal(mapEffort(words, other), other, String(effort));
  }
});
