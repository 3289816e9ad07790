import { test } from 'tap';
import { configKeyView, managedKeyView } from '../../../src/admin/keys.js';
import {
  changesSomething,
  fieldMessage,
  fieldOf,
  fieldsOf,
  type KeyFields,
  keyChangeBody,
  newKeyBody,
  noFields,
} from '../../../src/console/keys/form.js';
import type { KeyEntry } from '../../../src/console/keys/key.js';
import { checkKeyUpdate, checkNewKey } from '../../../src/keys/key-input.js';
import type { ManagedKey } from '../../../src/keys/managed-key.js';

const rules = { groups: new Set(['default', 'trial']), now: Date.parse('2026-11-22T00:00:00Z') };

const record: ManagedKey = {
  id: 'team-a',
  hash: 'a'.repeat(64),
  former: [],
  label: 'Team A',
  groups: ['default', 'trial'],
  limits: { requestsPerMinute: 600, tokensPerMinute: null, concurrent: 5 },
  budget: { usd: 12.5, per: 'week' },
  mayRoute: false,
  expiresAt: Date.parse('2027-01-01T12:34:56.789Z'),
  createdAt: rules.now,
  revokedAt: null,
};
// The page takes what the endpoint gives: the compiler compares the two.
const key: KeyEntry = managedKeyView({ record, revision: 7 }, false);

/** The body, where the fields make one. */
function bodyOf(outcome: ReturnType<typeof newKeyBody>): Readonly<Record<string, unknown>> {
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.body;
}

test('fields become the body of a new key, which the gateway takes', async (t) => {
  const fields: KeyFields = {
    ...noFields,
    id: ' team-a ',
    label: ' Team A ',
    groups: ['default'],
    requestsPerMinute: '600',
    usd: '12.5',
    per: 'week',
    expiresAt: '2027-01-01T00:00',
    mayRoute: true,
  };
  const body = bodyOf(newKeyBody(fields));
  t.same(body, {
    id: 'team-a',
    label: 'Team A',
    groups: ['default'],
    limits: { requestsPerMinute: 600, tokensPerMinute: null, concurrent: null },
    budget: { usd: 12.5, per: 'week' },
    expiresAt: '2027-01-01T00:00:00.000Z',
    mayRoute: true,
  });
  t.ok(checkNewKey(body, rules).ok);
});

test('a key needs no more than a group', async (t) => {
  const body = bodyOf(newKeyBody({ ...noFields, groups: ['trial'] }));
  t.same(body, {
    label: '',
    groups: ['trial'],
    limits: null,
    budget: null,
    expiresAt: null,
    mayRoute: false,
  });
  t.ok(checkNewKey(body, rules).ok);
});

test('what is wrong with fields stands at each of them', async (t) => {
  const outcome = newKeyBody({
    ...noFields,
    requestsPerMinute: '1.5',
    tokensPerMinute: 'many',
    concurrent: '0',
    usd: '-1',
    expiresAt: 'soon',
  });
  t.equal(outcome.ok, false);
  t.same(outcome.ok ? [] : Object.keys(outcome.problems).sort(), [
    'concurrent',
    'expiresAt',
    'groups',
    'requestsPerMinute',
    'tokensPerMinute',
    'usd',
  ]);
});

test('a change names what is not as it was, and the revision that was seen', async (t) => {
  const fields = fieldsOf(key);
  t.same(bodyOf(keyChangeBody(key, fields)), { revision: 7 });
  t.notOk(changesSomething({ revision: 7 }));
  t.same(
    bodyOf(keyChangeBody(key, { ...fields, groups: ['trial', 'default'] })),
    { revision: 7 },
    'order is none',
  );

  const { revision, ...changes } = bodyOf(
    keyChangeBody(key, { ...fields, requestsPerMinute: '', usd: '', groups: ['trial'] }),
  );
  t.equal(revision, 7);
  t.same(changes, {
    groups: ['trial'],
    limits: { requestsPerMinute: null, tokensPerMinute: null, concurrent: 5 },
    budget: null,
  });
  t.ok(changesSomething(changes));
  t.ok(checkKeyUpdate(changes, rules).ok);
});

test('an expiry whose seconds the field does not show stays as it is', async (t) => {
  const fields = fieldsOf(key);
  t.equal(fields.expiresAt, '2027-01-01T12:34');
  t.notOk(changesSomething(bodyOf(keyChangeBody(key, fields))));
  t.same(bodyOf(keyChangeBody(key, { ...fields, expiresAt: '' })), { expiresAt: null, revision: 7 });
});

test('a period without a budget is no change', async (t) => {
  const none = { ...key, budget: null };
  t.notOk(changesSomething(bodyOf(keyChangeBody(none, { ...fieldsOf(none), per: 'day' }))));
});

test('a refusal is told at the field that it is about', async (t) => {
  t.equal(fieldOf('limits.concurrent'), 'concurrent');
  t.equal(fieldOf('groups[1]'), 'groups');
  t.equal(fieldOf('id'), 'id');
  t.equal(fieldOf('revision'), null);
  t.equal(fieldOf(null), null);
});

test('at its field a refusal does not name the field once more', async (t) => {
  t.equal(fieldMessage({ param: 'id', message: 'id: must be short.' }), 'Must be short.');
  t.equal(
    fieldMessage({ param: 'id', message: 'A key with this id already exists.' }),
    'A key with this id already exists.',
  );
  t.equal(fieldMessage({ param: null, message: 'null and void' }), 'Null and void');
});

test('a key of the config file is one that the page can show', async (t) => {
  const { id, hash, groups, limits, budget, mayRoute, expiresAt } = record;
  const entry: KeyEntry = configKeyView({
    id,
    hash,
    groups: [...groups],
    limits,
    budget,
    mayRoute,
    expiresAt,
  });
  t.ok(entry.readOnly);
});
