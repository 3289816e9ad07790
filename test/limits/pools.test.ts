import { test } from 'tap';
import type { Key, Model, RateLimits } from '../../src/config/types.js';
import { type Pool, unusedView } from '../../src/limits/pool.js';
import { type CallPools, demandsOf, findPool, poolSteps, poolsOfKey } from '../../src/limits/pools.js';
import { atOnce } from '../../src/wire/steps.js';

const limits = (requests: number | null, tokens: number | null, concurrent: number | null): RateLimits => ({
  requestsPerMinute: requests,
  tokensPerMinute: tokens,
  concurrent,
});

/** The limits whose units a call takes together. */
function poolsOf({ demands }: CallPools): Pool[] {
  return demands.map(({ pool: { name, kind, limit } }) => ({ name, kind, limit }));
}

function makeKey(own: RateLimits | null, ...groups: [string, RateLimits][]): Key {
  return {
    id: 'a',
    hash: '',
    groups: [],
    models: new Map(),
    expiresAt: null,
    limits: own,
    budget: null,
    groupLimits: groups.map(([group, each]) => ({ group, limits: each })),
    groupBudgets: [],
    priceFactor: 1,
    mayRoute: false,
  };
}

function makeModel(own: RateLimits | null): Model {
  return {
    name: 'm',
    protocols: new Set(),
    targets: [],
    drawing: [],
    created: 0,
    price: null,
    limits: own,
    budget: null,
    hedgeMs: null,
    tokens: { input: null, output: null },
  };
}

test('a call has the limits of its key, its groups and its model, in this order: tokens and the model last', (t) => {
  const key = makeKey(limits(600, 1000, 5), ['g', limits(null, 2000, null)], ['h', limits(7, null, null)]);
  const first = poolsOfKey(key).beforeModel;
  t.strictSame(poolsOf(first), [
    { name: 'key:a:requests', kind: 'requests', limit: 600 },
    { name: 'key:a:concurrent', kind: 'concurrent', limit: 5 },
    { name: 'group:h:requests', kind: 'requests', limit: 7 },
  ]);
  t.strictSame(first.tokenIndexes, []);
  const found = poolsOfKey(key).forModel(makeModel(limits(null, null, 9)));
  t.strictSame(poolsOf(found), [
    { name: 'key:a:tokens', kind: 'tokens', limit: 1000 },
    { name: 'group:g:tokens', kind: 'tokens', limit: 2000 },
    { name: 'model:m:concurrent', kind: 'concurrent', limit: 9 },
  ]);
  t.strictSame(found.tokenIndexes, [0, 1]);
  const peeked: string[] = [];
  const peek = (pool: Pool) => {
    peeked.push(pool.name);
    return unusedView(pool);
  };
  found.rateLines.text('chat', 'vendorc', { ticks: 0, peek });
  const told = ['key:a:requests', 'group:h:requests', 'key:a:tokens', 'group:g:tokens'];
  t.strictSame(peeked, told);
  peeked.length = 0;
  first.rateLines.text('chat', 'vendorc', { ticks: 0, peek });
  t.strictSame(peeked, told, 'who is refused before the model is known hears of the same');
  t.strictSame(
    demandsOf(found, 50).map(({ amount }) => amount),
    [50, 50, 1],
  );
  t.end();
});

test('the list is made once for a key and a model, and a pool stands in it once', (t) => {
  const key = makeKey(null, ['g', limits(3, null, null)], ['g', limits(3, null, null)]);
  const [one, other] = [makeModel(null), makeModel(limits(1, null, null))];
  t.equal(poolsOfKey(key).forModel(one), poolsOfKey(key).forModel(one));
  t.not(poolsOfKey(key).forModel(one), poolsOfKey(key).forModel(other));
  t.equal(poolsOfKey(key).beforeModel, poolsOfKey(key).beforeModel);
  t.equal(poolsOfKey(key).beforeModel.demands.length, 1);
  t.equal(demandsOf(poolsOfKey(key).beforeModel, 5), demandsOf(poolsOfKey(key).beforeModel, 6));
  t.end();
});

test('keys and models that take turns have the list of their own each time', (t) => {
  const keys = [makeKey(limits(1, 10, null)), makeKey(limits(2, 20, null)), makeKey(null)];
  const models = [makeModel(null), makeModel(limits(null, null, 4))];
  const pairs = keys.flatMap((key) => models.map((model) => [key, model] as const));
  const made = pairs.map(([key, model]) => poolsOfKey(key).forModel(model));
  t.equal(new Set(made).size, pairs.length);
  for (const step of [1, 5, 2, 3]) {
    for (let turn = 0; turn < 2 * pairs.length; turn++) {
      const index = (turn * step) % pairs.length;
      const [key, model] = pairs[index] as (typeof pairs)[number];
      t.equal(poolsOfKey(key).forModel(model), made[index]);
    }
  }
  t.strictSame(
    made.map((each) => poolsOf(each).map(({ limit }) => limit)),
    [[10], [10, 4], [20], [20, 4], [], [4]],
  );
  t.strictSame(
    keys.map((key) => poolsOf(poolsOfKey(key).beforeModel).map(({ limit }) => limit)),
    [[1], [2], []],
  );
  t.end();
});

test('where nothing is limited, nothing is demanded', (t) => {
  const found = poolsOfKey(makeKey(null)).forModel(makeModel(null));
  t.strictSame(poolsOf(poolsOfKey(makeKey(null)).beforeModel), []);
  t.strictSame(poolsOf(found), []);
  t.strictSame(demandsOf(found, 5), []);
  t.end();
});

test('the pools of a whole config are found by name', (t) => {
  const pools = atOnce(
    poolSteps({
      keys: [makeKey(limits(1, null, null))],
      groups: [{ name: 'g', limits: limits(2, null, null), budget: { usd: 2, per: 'day' } }],
      models: [{ ...makeModel(limits(3, 4, null)), budget: { usd: 3, per: 'week' } }],
    }),
  );
  t.strictSame(
    new Set([...pools.values()].map(({ name }) => name)),
    new Set([
      ...['key:a:requests', 'group:g:requests', 'group:g:budget:'],
      ...['model:m:requests', 'model:m:tokens', 'model:m:budget:'],
    ]),
  );
  t.equal(pools.get('model:m:tokens')?.limit, 4);
  t.end();
});

test('the limits of a model that is called as a budget is are found', async (t) => {
  const budget = { usd: 1, per: 'day' as const };
  const model = { name: 'x:budget:y', limits: limits(5, null, null), budget };
  const pools = atOnce(poolSteps({ keys: [], groups: [], models: [model] }));
  t.match(findPool(pools, 'model:x:budget:y:requests'), { kind: 'requests', limit: 5 });
  t.match(findPool(pools, 'model:x:budget:y:budget:2026-11-26'), { kind: 'budget', limit: 1e9 });
  t.equal(findPool(pools, 'model:x:budget:z:requests'), undefined);
});
