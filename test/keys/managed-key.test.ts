import { test } from 'tap';
import { foreverMs, retentionMs } from '../../src/keys/key-announcements.js';
import { type ManagedKey, readManagedKey, writeManagedKey } from '../../src/keys/managed-key.js';
import { fc } from '../support/seed.js';
import { anyKey, managedKey } from './samples.js';

test('a record is read as it was written', (t) => {
  fc.assert(fc.property(anyKey, (key) => t.strictSame(readManagedKey(writeManagedKey(key)), key)));
  t.end();
});

test('nothing but the fields of a record is written', (t) => {
  const carrying = { ...managedKey(), key: 'sk-secret', limits: null, secret: 'sk-secret' };
  t.notMatch(writeManagedKey(carrying), /sk-secret/);
  t.end();
});

test('a damaged record is no key, and reading it does not throw', (t) => {
  const whole = JSON.parse(writeManagedKey(managedKey({ former: [{ hash: 'b'.repeat(64), until: 5 }] })));
  const limits = { requestsPerMinute: 1, tokensPerMinute: null, concurrent: null };
  const damages: Record<string, readonly unknown[]> = {
    version: [undefined, 0, 2, '1'],
    id: [undefined, null, 1, '', '../x', 'x'.repeat(65), ' a'],
    hash: [undefined, null, '', 'A'.repeat(64), 'a'.repeat(63), `${'a'.repeat(64)}\n`],
    former: [undefined, null, {}, [null], [{ hash: 'x', until: 1 }], [{ hash: 'a'.repeat(64) }]],
    label: [undefined, null, 1],
    groups: [undefined, null, 'default', [1]],
    limits: [undefined, 0, [], {}, { ...limits, concurrent: 0 }, { ...limits, concurrent: 1.5 }],
    budget: [undefined, 1, {}, { usd: 0, per: 'day' }, { usd: 1, per: 'year' }, { usd: '1', per: 'day' }],
    mayRoute: [undefined, null, 0],
    expiresAt: [undefined, '2027', -1, 1.5],
    createdAt: [undefined, null, -1],
    revokedAt: [undefined, false, -1],
  };
  t.ok(readManagedKey(JSON.stringify(whole)));
  for (const [field, values] of Object.entries(damages)) {
    for (const value of values) {
      const text = JSON.stringify({ ...whole, [field]: value });
      t.equal(readManagedKey(text), null, `${field}: ${JSON.stringify(value)}`);
    }
  }
  for (const text of ['', 'null', '[]', '1', '"a"', '{', '{"version":1}'])
    t.equal(readManagedKey(text), null);
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => readManagedKey(text) === null));
  t.end();
});

test('a record that was cut anywhere is no key', (t) => {
  const text = writeManagedKey(managedKey());
  for (let length = 0; length < text.length; length++) t.equal(readManagedKey(text.slice(0, length)), null);
  t.end();
});

test('a key without an end is kept, and one that has ended for thirty days', (t) => {
  const days = 24 * 60 * 60 * 1000;
  const kept = (key: ManagedKey, now: number) => retentionMs(key, now, 0);
  t.equal(kept(managedKey(), 1000), foreverMs);
  t.equal(kept(managedKey({ revokedAt: 1000 }), 1000), 30 * days);
  t.equal(kept(managedKey({ expiresAt: 10 * days }), 0), 40 * days);
  t.equal(kept(managedKey({ expiresAt: 10 * days, revokedAt: 5 * days }), 5 * days), 30 * days);
  t.equal(kept(managedKey({ revokedAt: 0 }), 40 * days), 1, 'never less than a store can take');
  t.end();
});
