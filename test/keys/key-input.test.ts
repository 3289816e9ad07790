import { test } from 'tap';
import { type Checked, checkGraceMs, checkKeyUpdate, checkNewKey } from '../../src/keys/key-input.js';
import { readManagedKey, writeManagedKey } from '../../src/keys/managed-key.js';
import { cases, fc } from '../support/seed.js';
import { managedKey } from './samples.js';

const rules = { groups: new Set(['default', 'trial']), now: Date.parse('2026-01-01T00:00:00Z') };

/** Fields at fault. */
function faults(checked: Checked<unknown>): string[] {
  return checked.ok ? [] : checked.problems.map(({ field }) => field);
}

test('a new key needs groups, and everything else has a default', (t) => {
  t.strictSame(checkNewKey({ groups: ['default'] }, rules), {
    ok: true,
    value: {
      id: null,
      label: '',
      groups: ['default'],
      limits: null,
      budget: null,
      mayRoute: false,
      expiresAt: null,
    },
  });
  t.same(faults(checkNewKey({}, rules)), ['groups']);
  t.end();
});

test('what a new key may be is taken over', (t) => {
  const input = {
    id: 'team-a.1_x',
    label: 'Team Ä 😀',
    groups: ['trial', 'default', 'trial'],
    limits: { requestsPerMinute: 600, concurrent: null },
    budget: { usd: 0.5, per: 'week' },
    mayRoute: true,
    expiresAt: '2027-01-01T01:00:00+01:00',
  };
  t.strictSame(checkNewKey(input, rules), {
    ok: true,
    value: {
      ...input,
      groups: ['trial', 'default'],
      limits: { requestsPerMinute: 600, tokensPerMinute: null, concurrent: null },
      expiresAt: Date.parse('2027-01-01T00:00:00Z'),
    },
  });
  const unlimited = checkNewKey({ groups: ['default'], limits: {} }, rules);
  t.equal(unlimited.ok && unlimited.value.limits, null, 'limits that limit nothing are none');
  t.end();
});

test('every problem names its field', (t) => {
  const cases: readonly (readonly [object, ...string[]])[] = [
    [{ id: '' }, 'id'],
    [{ id: '-a' }, 'id'],
    [{ id: 'a/b' }, 'id'],
    [{ id: 'a'.repeat(65) }, 'id'],
    [{ id: 7 }, 'id'],
    [{ label: 'x'.repeat(201) }, 'label'],
    [{ label: 'a\nb' }, 'label'],
    [{ groups: [] }, 'groups'],
    [{ groups: 'default' }, 'groups'],
    [{ groups: null }, 'groups'],
    [{ groups: new Array(65).fill('default') }, 'groups'],
    [{ groups: ['default', 'nobody', 3] }, 'groups[1]', 'groups[2]'],
    [{ limits: 5 }, 'limits'],
    [
      { limits: { requestsPerMinute: 0, tokensPerMinute: 1.5 } },
      'limits.requestsPerMinute',
      'limits.tokensPerMinute',
    ],
    [{ limits: { concurrent: '5' } }, 'limits.concurrent'],
    [{ limits: { perDay: 5 } }, 'limits.perDay'],
    [{ budget: { usd: 0, per: 'year' } }, 'budget.usd', 'budget.per'],
    [{ budget: [] }, 'budget', 'budget.usd', 'budget.per'],
    [{ mayRoute: 'yes' }, 'mayRoute'],
    [{ expiresAt: '2025-12-31T23:59:59Z' }, 'expiresAt'],
    [{ expiresAt: '2027-02-30T00:00:00Z' }, 'expiresAt'],
    [{ expiresAt: '2027-01-01' }, 'expiresAt'],
    [{ expiresAt: 1_900_000_000_000 }, 'expiresAt'],
    [{ key: 'sk-mine' }, 'key'],
  ];
  for (const [input, ...fields] of cases) {
    const checked = checkNewKey({ groups: ['default'], ...input }, rules);
    t.same(faults(checked), fields, JSON.stringify(input));
  }
  t.same(faults(checkNewKey(JSON.parse('{"__proto__": {}, "groups": ["default"]}'), rules)), ['__proto__']);
  for (const input of [null, undefined, [], 'default', 5]) t.same(faults(checkNewKey(input, rules)), ['']);
  t.end();
});

test('an update changes only what it names, and never the id', (t) => {
  t.strictSame(checkKeyUpdate({ label: 'x', expiresAt: null }, rules), {
    ok: true,
    value: { label: 'x', expiresAt: null },
  });
  t.strictSame(checkKeyUpdate({}, rules), { ok: true, value: {} });
  t.same(faults(checkKeyUpdate({ id: 'b', hash: 'x', revokedAt: null }, rules)), ['id', 'hash', 'revokedAt']);
  t.same(faults(checkKeyUpdate({ groups: [] }, rules)), ['groups']);
  t.end();
});

test('a grace is a whole number of milliseconds, up to thirty days', (t) => {
  t.strictSame(checkGraceMs(undefined), { ok: true, value: 0 });
  t.strictSame(checkGraceMs(0), { ok: true, value: 0 });
  t.strictSame(checkGraceMs(2_592_000_000), { ok: true, value: 2_592_000_000 });
  for (const input of [-1, 1.5, '5', 2_592_000_001, Number.NaN, {}])
    t.same(faults(checkGraceMs(input)), ['graceMs']);
  t.end();
});

test('problems are few and short, whatever is sent', (t) => {
  const flood = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => ['x'.repeat(500) + index, 1]));
  const checked = checkNewKey(flood, rules);
  t.ok(!checked.ok && checked.problems.length <= 20);
  t.ok(JSON.stringify(checked).length < 4000);
  t.end();
});

test('whatever passes the check makes a record that can be read again', (t) => {
  const field = fc.constantFrom('id', 'label', 'groups', 'limits', 'budget', 'mayRoute', 'expiresAt');
  const value = fc.oneof(
    fc.constantFrom<unknown>('a', 'k.1', true, null, { usd: 1, per: 'day' }, { concurrent: 3 }, ['default']),
    fc.constantFrom<unknown>(
      '2030-01-01T00:00:00Z',
      { usd: Number.POSITIVE_INFINITY, per: 'day' },
      { concurrent: 2 ** 60 },
    ),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(fc.dictionary(field, value), (input) => {
      const checked = checkNewKey({ groups: ['default'], ...input }, rules);
      if (!checked.ok) return checked.problems.length > 0;
      const record = managedKey({ ...checked.value, id: checked.value.id ?? 'made-up' });
      t.strictSame(readManagedKey(writeManagedKey(record)), record);
      return true;
    }),
    { numRuns: cases(300) },
  );
  t.end();
});
