import { test } from 'tap';
import { WideMap } from '../../src/wire/wide-map.js';
import { fc } from '../support/seed.js';

test('a wide map holds what a map does, in whatever order', (t) => {
  const name = fc.oneof(fc.string({ maxLength: 3 }), fc.stringMatching(/^[0-9a-f]{6}$/));
  const action = fc.tuple(name, fc.option(fc.integer()));
  fc.assert(
    fc.property(fc.array(action), (actions) => {
      const [map, wide] = [new Map<string, number>(), new WideMap<number>()];
      for (const [key, value] of actions) {
        if (value === null) t.equal(wide.delete(key), map.delete(key));
        else {
          map.set(key, value);
          wide.set(key, value);
        }
        t.equal(wide.size, map.size);
        t.equal(wide.get(key), map.get(key));
        t.equal(wide.has(key), map.has(key));
      }
      t.same([...wide.keys()].sort(), [...map.keys()].sort());
      t.same([...wide.values()].sort(), [...map.values()].sort());
    }),
  );
  t.end();
});
