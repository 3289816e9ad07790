import { test } from 'tap';
import { createKeyPools } from '../../src/limits/pools.js';

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
