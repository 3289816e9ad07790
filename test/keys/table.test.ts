import { createHash } from 'node:crypto';
import { test } from 'tap';
import { createKeyShares } from '../../src/config/snapshot.js';
import type { Key } from '../../src/config/types.js';
import { createKeyResolver, createManagedKeySet } from '../../src/keys/key-set.js';
import { hashKey, newKey } from '../../src/keys/secret.js';
import { createKeyTable } from '../../src/keys/table.js';
import { noManagedKeys } from '../support/managed-keys.js';
import { fc } from '../support/seed.js';
import { configKey, managedKey, models } from './samples.js';

const unlimited = {
  limits: null,
  budget: null,
  groupLimits: [],
  groupBudgets: [],
  priceFactor: 1,
  mayRoute: false,
} as const;

const resolve = createKeyResolver(createKeyShares([], models));
const none = { set: noManagedKeys(), resolve, configIds: new Set<string>() };

function tableOf(secrets: readonly string[], expiresAt: number | null = null) {
  const keys = secrets.map((secret, index): [string, Key] => {
    const hash = createHash('sha256').update(secret).digest('hex');
    return [hash, { id: `key-${index}`, hash, groups: [], models: new Map(), expiresAt, ...unlimited }];
  });
  return createKeyTable(new Map(keys), none);
}

test('a key is found by its text, the first time and again', (t) => {
  const table = tableOf(['sk-one', 'sk-two']);
  t.equal(table.find('sk-two')?.id, 'key-1');
  t.equal(table.find('sk-two')?.id, 'key-1');
  t.equal(table.find('sk-one')?.id, 'key-0');
  t.end();
});

test('only the exact text is a key', (t) => {
  const table = tableOf(['sk-one']);
  const hash = createHash('sha256').update('sk-one').digest('hex');
  for (const presented of ['', 'sk-on', 'sk-one ', 'SK-ONE', hash, `sha256:${hash}`]) {
    t.equal(table.find(presented), null, presented);
  }
  fc.assert(fc.property(fc.string(), (text) => text === 'sk-one' || table.find(text) === null));
  t.end();
});

test('a text of more than 512 characters is no key, whatever its hash', (t) => {
  const table = tableOf(['k'.repeat(512), 'k'.repeat(513)]);
  t.equal(table.find('k'.repeat(512))?.id, 'key-0');
  t.equal(table.find('k'.repeat(513)), null);
  t.end();
});

test('an expired key is still found, so that the refusal can say why', (t) => {
  t.equal(tableOf(['sk-old'], 1).find('sk-old')?.expiresAt, 1);
  t.end();
});

test('more callers than the cache holds are all found', (t) => {
  const secrets = Array.from({ length: 5000 }, (_, index) => `sk-${index}`);
  const table = tableOf(secrets);
  for (const round of [1, 2]) {
    const found = secrets.filter((secret, index) => table.find(secret)?.id === `key-${index}`);
    t.equal(found.length, secrets.length, `round ${round}`);
  }
  t.end();
});

test('a new key is different each time, and its hash finds it', (t) => {
  const key = newKey();
  t.match(key, /^sk-[\w-]{43}$/);
  t.not(newKey(), key);
  const hash = hashKey(key).slice('sha256:'.length);
  const record: Key = { id: 'new', hash, groups: [], models: new Map(), expiresAt: null, ...unlimited };
  t.equal(createKeyTable(new Map([[hash, record]]), none).find(key), record);
  t.end();
});

test('a table knows which keys it still holds, and whether it knows all of them', (t) => {
  const sha256 = (text: string) => hashKey(text).slice('sha256:'.length);
  const set = createManagedKeySet();
  const configured = configKey('configured', sha256('sk-config'));
  const managed = { set, resolve, configIds: new Set([configured.id]) };
  const table = createKeyTable(new Map([[configured.hash, configured]]), managed);
  t.equal(table.isComplete, false);
  const [a, b] = ['sk-a', 'sk-b'].map((text) => managedKey({ id: text, hash: sha256(text) }));
  if (a === undefined || b === undefined) throw new Error('two keys are needed');
  set.apply({ whole: false, put: [a], removed: [], more: false });
  t.equal(table.isComplete, false);
  set.apply({ whole: true, put: [a, b], removed: [], more: false });
  t.equal(table.isComplete, true);
  const found = ['sk-a', 'sk-b', 'sk-config'].map((text) => table.find(text) as Key);
  const isHeld = (key: Key) => table.current(key) !== null;
  t.strictSame(found.map(isHeld), [true, true, true]);
  set.apply({ whole: false, put: [{ ...a, groups: ['other'] }], removed: ['sk-b'], more: false });
  t.strictSame(found.map(isHeld), [true, false, true]);
  t.strictSame(table.current(found[0] as Key)?.groups, ['other'], 'as it is now');
  set.apply({ whole: false, put: [{ ...a, hash: b.hash }], removed: [], more: false });
  t.strictSame(found.map(isHeld), [false, false, true]);
  const renamed = { ...configured, id: 'renamed' };
  t.equal(createKeyTable(new Map([[renamed.hash, renamed]]), none).current(configured), null, 'another key');
  t.end();
});
