import { test } from 'tap';
import { defaults } from '../../src/config/resolve.js';
import type { Target, Upstream } from '../../src/config/types.js';
import { orderTargets } from '../../src/routing/candidates.js';

const upstream = {} as Upstream;
const target = (model: string, priority: number, weight: number): Target => ({
  upstream,
  model,
  native: new Set(['chat']),
  wire: 'chat',
  translation: { ...defaults.translation, model, streamUsage: true },
  images: 'openai',
  priority,
  weight,
});
const names = (targets: readonly Target[]) => targets.map(({ model }) => model).join('');

test('lower priorities come first, whatever the draw', async (t) => {
  const targets = [target('a', 0, 1), target('b', 1, 5), target('c', 2, 9)];
  for (const draw of [0, 0.3, 0.999]) t.equal(names(orderTargets(targets, draw)), 'abc');
});

test('among equals the first is drawn by weight and all the others follow', async (t) => {
  const targets = [target('a', 0, 1), target('b', 0, 3), target('c', 1, 1)];
  t.equal(names(orderTargets(targets, 0.24)), 'abc');
  t.equal(names(orderTargets(targets, 0.26)), 'bac');
  t.equal(names(orderTargets(targets, 0.99)), 'bac');
});

test('weights of nothing still leave an order', async (t) => {
  t.equal(names(orderTargets([target('a', 0, 0), target('b', 0, 0)], 0.5)), 'ab');
});
