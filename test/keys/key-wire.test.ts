import { test } from 'tap';
import { fromWire, toWire } from '../../src/keys/key-wire.js';
import type { ActiveKey, ManagedKey } from '../../src/keys/managed-key.js';
import { fc } from '../support/seed.js';
import { anyKey, managedKey } from './samples.js';

function active({ id, hash, former, groups, limits, budget, mayRoute, expiresAt }: ManagedKey): ActiveKey {
  return { id, hash, former, groups, limits, budget, mayRoute, expiresAt };
}

function wholeOf(put: readonly ActiveKey[]) {
  return toWire({ whole: true, put, removed: [], more: false });
}

/** Through JSON, as between processes. */
function sent<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

test('a change comes over as it was, without what only operators see', (t) => {
  const change = fc.record({
    whole: fc.boolean(),
    put: fc.array(anyKey, { maxLength: 5 }),
    removed: fc.array(fc.string(), { maxLength: 3 }),
    more: fc.boolean(),
  });
  fc.assert(
    fc.property(change, ({ whole, put, removed, more }) => {
      const arrived = fromWire(sent(toWire({ whole, put, removed, more })));
      t.strictSame(arrived, { whole, put: put.map(active), removed, more });
    }),
  );
  t.notMatch(JSON.stringify(wholeOf([managedKey({ label: 'Team A' })])), /Team A/);
  t.end();
});

test('one revocation among many keys is a small message, and all of them are no large one', (t) => {
  const keys = Array.from({ length: 10_000 }, (_, index) =>
    managedKey({ id: `customer-${index}`, hash: index.toString(16).padStart(64, '0') }),
  );
  const whole = sent(wholeOf(keys));
  t.ok(whole.whole);
  t.equal(whole.groups.length, 1);
  t.ok(JSON.stringify(whole).length < 140 * keys.length);
  t.ok(JSON.stringify(toWire({ whole: false, put: [], removed: ['customer-7'], more: false })).length < 100);
  t.end();
});

test('keys of the same groups share one list of them', (t) => {
  const keys = ['a', 'b', 'c'].map((id) => managedKey({ id, groups: id === 'c' ? ['x'] : ['x', 'y'] }));
  const { put } = fromWire(sent(wholeOf(keys)));
  t.equal(put[0]?.groups, put[1]?.groups);
  t.same(put[2]?.groups, ['x']);
  t.end();
});

test('a message that names groups which are not there is refused whole', (t) => {
  const message = { ...wholeOf([managedKey()]), groups: [] };
  t.throws(() => fromWire(message), RangeError);
  t.end();
});
