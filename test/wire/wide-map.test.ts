import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'tap';
import { shardOf, shardOfEnd, WideMap } from '../../src/wire/wide-map.js';
import { fc } from '../support/seed.js';

test('a wide map holds what a map does, in whatever order', (t) => {
  const name = fc.oneof(
    fc.string({ maxLength: 3 }),
    fc.stringMatching(/^[0-9a-f]{6}$/),
    fc.nat(2000).map((number) => `name-${number}`),
  );
  const action = fc.tuple(name, fc.option(fc.integer()));
  fc.assert(
    fc.property(fc.array(action, { size: '+1' }), fc.boolean(), fc.nat(2000), (actions, byEnd, count) => {
      const map = new Map<string, number>();
      const wide = byEnd ? new WideMap<number>(shardOfEnd) : new WideMap<number>();
      for (let index = 0; index < count; index++) {
        map.set(`name-${index}`, index);
        wide.set(`name-${index}`, index);
      }
      for (const [key, value] of actions) {
        if (value === null) assert.equal(wide.delete(key), map.delete(key));
        else {
          map.set(key, value);
          wide.set(key, value);
        }
        assert.equal(wide.size, map.size);
        assert.equal(wide.get(key), map.get(key));
        assert.equal(wide.has(key), map.has(key));
      }
      assert.deepEqual([...wide.keys()].sort(), [...map.keys()].sort());
      assert.deepEqual([...wide.values()].sort(), [...map.values()].sort());
    }),
  );
  t.end();
});

test('no part of a wide map has much more than its share of the names of limits, nor of hashes', (t) => {
  const ids = Array.from({ length: 20_000 }, (_, index) => `team-${index}`);
  const limits = ['requests', 'tokens', 'concurrent'];
  const names = ids.flatMap((id) => limits.map((limit) => `key:${id}:${limit}`));
  const hashes = ids.map((id) => createHash('sha256').update(id).digest('hex'));
  for (const all of [ids, names, hashes]) {
    const parts = new Map<number, number>();
    for (const name of all) parts.set(shardOf(name), (parts.get(shardOf(name)) ?? 0) + 1);
    const share = all.length / 256;
    t.ok(Math.max(...parts.values()) < 3 * share, `${Math.max(...parts.values())} of ${share}`);
  }
  t.end();
});
