import assert from 'node:assert/strict';
import { test } from 'tap';
import { queryParameter } from '../../src/wire/query.js';
import { cases, fc } from '../support/seed.js';

test('a parameter is found wherever it stands, and only by its whole name', async (t) => {
  t.equal(queryParameter('key=abc', 'key'), 'abc');
  t.equal(queryParameter('a=1&key=abc&b=2', 'key'), 'abc');
  t.equal(queryParameter('monkey=1&keys=2&key2=3', 'key'), '');
  t.equal(queryParameter('key=first&key=second', 'key'), 'first');
  t.equal(queryParameter('key=a=b', 'key'), 'a=b');
});

test('an absent, empty or valueless parameter is an empty string', async (t) => {
  for (const query of ['', '&', 'key', 'key=', 'key&x=1', '&&key=', 'x=key=1'])
    t.equal(queryParameter(query, 'key'), '', query);
});

test('a value is decoded as a form, and a malformed escape leaves it as it came', async (t) => {
  t.equal(queryParameter('key=a%2Bb+c%26', 'key'), 'a+b c&');
  t.equal(queryParameter('key=a%zz+', 'key'), 'a%zz+');
});

test('well-formed queries read as URLSearchParams reads them', async () => {
  const pair = fc.tuple(fc.constantFrom('key', 'ke', 'keyy', 'x'), fc.string({ unit: 'grapheme' }));
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 6 }), (pairs) => {
      const query = new URLSearchParams(pairs).toString();
      assert.equal(queryParameter(query, 'key'), new URLSearchParams(query).get('key') ?? '');
    }),
    { numRuns: cases(500) },
  );
});
