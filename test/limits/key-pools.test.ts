import { test } from 'tap';
import { allPools, changedPools, createKeyPools } from '../../src/limits/pools.js';
import { atOnce } from '../../src/wire/steps.js';

const key = (id: string, requestsPerMinute: number | null, concurrent: number | null = null) => ({
  id,
  budget: null,
  limits: { requestsPerMinute, tokensPerMinute: null, concurrent },
});

test('pools come and go with their keys', (t) => {
  const pools = createKeyPools();
  const limits = () =>
    ['key:a:requests', 'key:a:concurrent', 'key:b:requests'].map((name) => pools.get(name)?.limit);
  pools.apply({
    whole: true,
    put: [key('a', 1, 2), key('b', 3), { id: 'c', limits: null, budget: null }],
    removed: [],
  });
  t.strictSame(limits(), [1, 2, 3]);
  t.match(pools.get('key:a:concurrent'), { name: 'key:a:concurrent', kind: 'concurrent' });
  pools.apply({ whole: false, put: [key('a', 5)], removed: ['b', 'unknown'] });
  t.strictSame(limits(), [5, undefined, undefined]);
  pools.apply({ whole: false, put: [{ id: 'a', limits: null, budget: null }], removed: [] });
  t.strictSame(limits(), [undefined, undefined, undefined]);
  pools.apply({ whole: false, put: [key('a', 1)], removed: [] });
  pools.apply({ whole: true, put: [key('b', 4)], removed: [] });
  t.strictSame(limits(), [undefined, undefined, 4]);
  t.end();
});

test('what has changed is told as it was, and what is new as it is', (t) => {
  const pools = createKeyPools();
  const told = (changed: readonly { readonly name: string; readonly limit: number }[]) =>
    changed.map(({ name, limit }) => `${name} ${limit}`).sort();
  const first = pools.apply({ whole: true, put: [key('a', 1, 2), key('b', 3)], removed: [] });
  t.strictSame(told(first), ['key:a:concurrent 2', 'key:a:requests 1', 'key:b:requests 3']);
  const next = pools.apply({ whole: false, put: [key('a', 5, 2), key('c', 4)], removed: ['b'] });
  t.strictSame(told(next), ['key:a:requests 1', 'key:c:requests 4']);

  const config = (...keys: ReturnType<typeof key>[]) => allPools({ keys, groups: [], models: [] });
  const before = config(key('a', 1, 2), key('b', 3));
  const now = config(key('a', 5, 2), key('c', 4));
  t.strictSame(told(atOnce(changedPools(now, before))), ['key:a:requests 1', 'key:c:requests 4']);
  t.strictSame(atOnce(changedPools(now, config())), [], 'at the start nobody has used any');
  t.end();
});
