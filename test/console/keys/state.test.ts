import { test } from 'tap';
import { type KeyEntry, keyNotes, keyState, workingFirst } from '../../../src/console/keys/key.js';
import { limitLines } from '../../../src/console/keys/limits.js';

const now = Date.parse('2026-11-22T00:00:00Z');
const key: KeyEntry = {
  id: 'team-a',
  source: 'managed',
  readOnly: false,
  label: '',
  groups: ['default'],
  limits: { requestsPerMinute: 600, tokensPerMinute: null, concurrent: 5 },
  budget: null,
  mayRoute: false,
  expiresAt: null,
};

test('the state of a key', async (t) => {
  const nameOf = (more: Partial<KeyEntry>) => keyState({ ...key, ...more }, now).name;
  t.equal(nameOf({}), 'active');
  t.equal(nameOf({ expiresAt: '2027-11-22T00:00:00Z' }), 'active');
  t.equal(nameOf({ expiresAt: '2026-11-25T00:00:00Z' }), 'expires soon');
  t.equal(nameOf({ expiresAt: '2026-11-22T00:00:00Z' }), 'expired');
  t.equal(nameOf({ expiresAt: '2026-11-21T00:00:00Z', revokedAt: '2026-11-20T00:00:00Z' }), 'revoked');
  t.equal(nameOf({ overridden: true }), 'overridden');
  t.notOk(keyState({ ...key, overridden: true }, now).works);
});

test('keys that work come before those that do not', async (t) => {
  const keys = [
    { ...key, id: 'a', revokedAt: '2026-11-20T00:00:00Z' },
    { ...key, id: 'b' },
    { ...key, id: 'c', expiresAt: '2026-11-20T00:00:00Z' },
    { ...key, id: 'd', expiresAt: '2026-11-23T00:00:00Z' },
  ];
  t.same(
    workingFirst(keys, now).map(({ id }) => id),
    ['b', 'd', 'a', 'c'],
  );
});

test('what else there is to know of a key', async (t) => {
  t.same(keyNotes(key), []);
  t.match(keyNotes({ ...key, source: 'config', readOnly: true })[0], 'config file');
  t.same(keyNotes({ ...key, formerKeys: 1 }), ['1 former key still works']);
  t.same(keyNotes({ ...key, formerKeys: 2 }), ['2 former keys still work']);
});

test('limits are told with what the workers have taken of them', async (t) => {
  const inUse = new Map([
    ['key:team-a:requests', { name: 'key:team-a:requests', limit: 600, share: 300, free: 210 }],
    ['key:team-b:concurrent', { name: 'key:team-b:concurrent', limit: 5, share: 5, free: 0 }],
  ]);
  t.same(
    limitLines(key, inUse).map(({ name, limit, taken }) => [name, limit, taken]),
    [
      ['requestsPerMinute', 600, 90],
      ['concurrent', 5, null],
    ],
  );
  t.same(limitLines({ ...key, limits: null }, inUse), []);
});
