import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'tap';
import { createKeyShares } from '../../src/config/snapshot.js';
import type { Key } from '../../src/config/types.js';
import { createKeyResolver, createManagedKeySet } from '../../src/keys/key-set.js';
import type { ManagedKey } from '../../src/keys/managed-key.js';
import { createKeyTable } from '../../src/keys/table.js';
import { fc } from '../support/seed.js';
import { configKey, groups, managedKey, models, plainGroup } from './samples.js';

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const resolve = createKeyResolver(createKeyShares(groups, models));

function idsOf(config: ReadonlyMap<string, Key>): ReadonlySet<string> {
  return new Set([...config.values()].map(({ id }) => id));
}

/** A table with the config keys `sk-config-a` and `sk-config-b`, and a set for managed ones. */
function makeTable(now = () => 1000) {
  const config = new Map(
    ['a', 'b'].map((name) => [
      hashOf(`sk-config-${name}`),
      configKey(`config-${name}`, hashOf(`sk-config-${name}`)),
    ]),
  );
  const set = createManagedKeySet(now);
  return { config, set, table: createKeyTable(config, { set, resolve, configIds: idsOf(config) }) };
}

test('managed keys are found beside those of the config', (t) => {
  const { set, table } = makeTable();
  t.equal(table.find('sk-new'), null);
  set.apply({
    whole: true,
    put: [managedKey({ id: 'new', hash: hashOf('sk-new') })],
    removed: [],
    more: false,
  });
  const key = table.find('sk-new');
  t.match(key, { id: 'new', hash: hashOf('sk-new'), groups: ['default'], groupLimits: [] });
  t.equal(key?.models, models);
  t.equal(table.find('sk-new'), key, 'the same object each time');
  t.equal(table.find('sk-config-a')?.id, 'config-a');
  t.equal(set.size, 1);
  t.end();
});

test('a removed key is refused by the very next lookup, however often it was found', (t) => {
  const { set, table } = makeTable();
  const put = ['x', 'y'].map((id) => managedKey({ id, hash: hashOf(id) }));
  set.apply({ whole: true, put, removed: [], more: false });
  for (let round = 0; round < 3; round++) t.equal(table.find('x')?.id, 'x');
  set.apply({ whole: false, put: [], removed: ['x', 'never-there'], more: false });
  t.equal(table.find('x'), null);
  t.equal(table.find('x'), null);
  t.equal(table.find('y')?.id, 'y');
  set.apply({ whole: true, put: [], removed: [], more: false });
  t.equal(table.find('y'), null);
  t.equal(table.find('sk-config-b')?.id, 'config-b');
  t.equal(set.size, 0);
  t.end();
});

test('a change of a key holds from the next lookup on', (t) => {
  const { set, table } = makeTable();
  set.apply({ whole: true, put: [managedKey({ hash: hashOf('x') })], removed: [], more: false });
  t.equal(table.find('x')?.mayRoute, false);
  const changed = managedKey({ hash: hashOf('x'), mayRoute: true, groups: ['one', 'gone'] });
  set.apply({ whole: false, put: [changed], removed: [], more: false });
  t.equal(table.find('x')?.mayRoute, true);
  t.same([...(table.find('x')?.models.keys() ?? [])], ['m1']);
  t.match(table.find('x')?.groupLimits, [{ group: 'one', limits: { requestsPerMinute: 1 } }]);
  t.end();
});

test('a former key is found with the end of its grace, and not once that is over', (t) => {
  let now = 1000;
  const { set, table } = makeTable(() => now);
  const rotated = managedKey({
    hash: hashOf('new'),
    former: [
      { hash: hashOf('old'), until: 5000 },
      { hash: hashOf('older'), until: 1000 },
    ],
    expiresAt: 9000,
  });
  set.apply({ whole: true, put: [rotated], removed: [], more: false });
  t.match(table.find('new'), { id: 'a', expiresAt: 9000 });
  t.match(table.find('old'), { id: 'a', expiresAt: 5000, hash: hashOf('old') });
  t.equal(table.find('older'), null);
  t.equal(set.size, 1);
  now = 5000;
  t.equal(table.find('old')?.expiresAt, 5000, 'whoever finds it looks at its end');
  set.apply({ whole: false, put: [{ ...rotated, expiresAt: 4000 }], removed: [], more: false });
  for (const text of ['new', 'old']) t.equal(table.find(text), null, 'what has expired is left out');
  now = 1000;
  set.apply({ whole: false, put: [{ ...rotated, expiresAt: 4000 }], removed: [], more: false });
  t.equal(table.find('old')?.expiresAt, 4000, 'no former key outlives its key');
  t.end();
});

test('a key of the config counts before a managed one with its id or its hash', (t) => {
  const { set, table } = makeTable();
  const put = [
    managedKey({ id: 'config-a', hash: hashOf('sk-shadowed') }),
    managedKey({ id: 'thief', hash: hashOf('sk-config-b'), mayRoute: true }),
  ];
  set.apply({ whole: true, put, removed: [], more: false });
  t.equal(table.find('sk-shadowed'), null);
  t.match(table.find('sk-config-b'), { id: 'config-b', mayRoute: false });
  set.apply({ whole: true, put: [], removed: [], more: false });
  t.equal(table.find('sk-config-b')?.id, 'config-b');
  t.end();
});

test('of two keys with one hash the first counts, and goes without taking what is not its own', (t) => {
  const { set, table } = makeTable();
  const [x, y] = ['x', 'y'].map((id) => managedKey({ id, hash: hashOf('same') }));
  if (x === undefined || y === undefined) throw new Error('two keys were made');
  set.apply({ whole: true, put: [x, y], removed: [], more: false });
  t.equal(table.find('same')?.id, 'x');
  set.apply({ whole: false, put: [], removed: ['y'], more: false });
  t.equal(table.find('same')?.id, 'x');
  set.apply({ whole: false, put: [y], removed: ['x'], more: false });
  t.equal(table.find('same')?.id, 'y');
  t.end();
});

test('one set serves the tables of two configs, each with its own groups', (t) => {
  const { set, table } = makeTable();
  set.apply({
    whole: true,
    put: [managedKey({ hash: hashOf('x'), groups: ['one'] })],
    removed: [],
    more: false,
  });
  const limits = { requestsPerMinute: null, tokensPerMinute: 7, concurrent: null };
  const later = createKeyTable(new Map(), {
    set,
    resolve: createKeyResolver(
      createKeyShares([{ ...plainGroup, name: 'one', models: ['m3'], limits }], models),
    ),
    configIds: new Set(),
  });
  t.same([...(table.find('x')?.models.keys() ?? [])], ['m1']);
  t.same([...(later.find('x')?.models.keys() ?? [])], ['m3']);
  t.same(later.find('x')?.groupLimits, [{ group: 'one', limits }]);
  t.end();
});

test('keys of the same groups share their models, in whatever order they name them', (t) => {
  const { set, table } = makeTable();
  const put = [
    managedKey({ id: 'x', hash: hashOf('x'), groups: ['two', 'one'] }),
    managedKey({ id: 'y', hash: hashOf('y'), groups: ['one', 'two', 'one'] }),
  ];
  set.apply({ whole: true, put, removed: [], more: false });
  t.same([...(table.find('x')?.models.keys() ?? [])], ['m1', 'm2']);
  t.equal(table.find('x')?.models, table.find('y')?.models);
  t.end();
});

/** Few ids and texts, so that they meet. */
const texts = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5'];
const hash = fc.constantFrom(...texts.map(hashOf));
const someKey = fc.record({
  id: fc.constantFrom('x', 'y', 'z', 'config'),
  hash,
  former: fc.array(fc.record({ hash, until: fc.integer({ min: 0, max: 20 }) }), { maxLength: 2 }),
  expiresAt: fc.option(fc.integer({ min: 0, max: 20 })),
  revokedAt: fc.option(fc.constant(1)),
  groups: fc.subarray(['default', 'one', 'two', 'gone']),
});

/** One table of all keys that are good at a time: neither revoked nor expired, nor of an id or hash that the config has. */
function mergedKeys(config: ReadonlyMap<string, Key>, managed: readonly ManagedKey[], now: number) {
  const ids = new Set([...config.values()].map(({ id }) => id));
  const merged = new Map(config);
  for (const key of managed) {
    if (key.revokedAt !== null || ids.has(key.id)) continue;
    const last = key.expiresAt ?? Number.POSITIVE_INFINITY;
    for (const { hash, until } of [{ hash: key.hash, until: last }, ...key.former]) {
      const ends = Math.min(until, last);
      const expiresAt = ends === Number.POSITIVE_INFINITY ? null : ends;
      if (ends > now && !merged.has(hash)) merged.set(hash, resolve({ key, hash, expiresAt, isLive: true }));
    }
  }
  return merged;
}

test('the table of two levels finds what the merged one holds', (t) => {
  const config = new Map<string, Key>([[hashOf('k0'), configKey('config', hashOf('k0'))]]);
  const keys = fc.uniqueArray(someKey, { selector: ({ id }) => id, maxLength: 4 });
  fc.assert(
    fc.property(keys, (some) => {
      const managed = some.map((key) => managedKey(key));
      const set = createManagedKeySet(() => 10);
      set.apply({
        whole: true,
        put: managed.filter(({ revokedAt }) => revokedAt === null),
        removed: [],
        more: false,
      });
      const table = createKeyTable(config, { set, resolve, configIds: idsOf(config) });
      const merged = mergedKeys(config, managed, 10);
      for (const text of texts) {
        const found = table.find(text);
        const expected = merged.get(hashOf(text)) ?? null;
        // Where hashes are shared with a key that the config hides, the set may hold that one in their place.
        const isShared = managed.filter((key) =>
          [key, ...key.former].some((each) => each.hash === hashOf(text)),
        );
        if (isShared.length < 2) t.strictSame(found, expected);
      }
    }),
  );
  t.end();
});

test('changes one by one make the same set as all at once', (t) => {
  const distinct = someKey.map((key) => {
    const own = key.id === 'config' ? 'k5' : { x: 'k1', y: 'k2', z: 'k3' }[key.id as 'x' | 'y' | 'z'];
    return managedKey({ ...key, hash: hashOf(own), former: [], revokedAt: null });
  });
  const change = fc.oneof(
    distinct.map((key) => ({ whole: false, put: [key], removed: [], more: false })),
    fc.constantFrom('x', 'y', 'z').map((id) => ({ whole: false, put: [], removed: [id], more: false })),
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
      const { set, table } = makeTable(() => 10);
      const model = new Map<string, ReturnType<typeof managedKey>>();
      for (const one of changes) {
        for (const text of texts) table.find(text);
        set.apply(one);
        for (const id of one.removed) model.delete(id);
        for (const key of one.put) model.set(key.id, key);
        const whole = createManagedKeySet(() => 10);
        whole.apply({ whole: true, put: [...model.values()], removed: [], more: false });
        const fresh = createKeyTable(new Map(), { set: whole, resolve, configIds: new Set() });
        for (const text of texts) assert.deepEqual(table.find(text), fresh.find(text));
        assert.equal(set.size, whole.size);
      }
    }),
    { numRuns: 50 },
  );
  t.end();
});

test('a cache that overflows forgets no key and keeps no removed one', (t) => {
  const { set, table } = makeTable();
  const put = Array.from({ length: 5000 }, (_, index) =>
    managedKey({ id: `k${index}`, hash: hashOf(`${index}`) }),
  );
  set.apply({ whole: true, put, removed: [], more: false });
  for (let index = 0; index < 5000; index++) table.find(`${index}`);
  set.apply({
    whole: false,
    put: [],
    removed: put.filter((_, index) => index % 2 === 0).map(({ id }) => id),
    more: false,
  });
  const found = put.filter((_, index) => table.find(`${index}`) !== null);
  t.equal(found.length, 2500);
  t.ok(found.every(({ id }) => Number(id.slice(1)) % 2 === 1));
  t.end();
});
