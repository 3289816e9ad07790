import assert from 'node:assert/strict';
import { test } from 'tap';
import { createRouter, type RouterEntry } from '../../src/http/router.js';
import { cases, fc } from '../support/seed.js';
import { findNaively } from './naive-router.js';

const words = ['a', 'ab', 'abc', 'b', 'b:act', 'models'];
const middle = fc.oneof(fc.constantFrom(...words), fc.constant('{}'));
const last = fc.oneof(
  fc.constantFrom(...words, ''),
  fc.constantFrom('{}', '{}:act', '{}:go', '{...}', '{}:act', '{...}'),
);
const method = fc.constantFrom('GET', 'POST', 'DELETE');

/** Parameters are named after their place, so that no two routes disagree. */
const pattern = fc.tuple(fc.array(middle, { maxLength: 3 }), last).map(([start, end]) => {
  const segments = [...start, end].map((segment, index) => segment.replace(/^\{/, `{p${index}`));
  return `/${segments.join('/')}`;
});

const table = fc
  .uniqueArray(fc.tuple(method, pattern), { maxLength: 40, selector: ([verb, path]) => `${verb} ${path}` })
  .map((pairs): RouterEntry<string>[] =>
    pairs.map(([verb, path]) => ({ method: verb, path, value: `${verb} ${path}` })),
  );

const piece = fc.constantFrom(
  ...words,
  '',
  'x',
  'x:act',
  'x:y:go',
  'x:other',
  ':act',
  '%41',
  '%2Fb',
  '%zz',
  '%E4%BD%A0',
  'é',
);
const path = fc.oneof(
  { weight: 19, arbitrary: fc.array(piece, { maxLength: 6 }).map((pieces) => `/${pieces.join('/')}`) },
  { weight: 1, arbitrary: fc.string() },
);

test('the tree answers as a linear search over the same routes does', async () => {
  fc.assert(
    fc.property(
      table,
      fc.array(fc.tuple(method, path), { minLength: 1, maxLength: 30 }),
      (entries, requests) => {
        const router = createRouter(entries);
        for (const [verb, target] of requests) {
          assert.deepEqual(
            router.find(verb, target),
            findNaively(entries, verb, target),
            `${verb} ${target}`,
          );
        }
      },
    ),
    { numRuns: cases(3000) },
  );
});

test('the order in which routes are given does not matter', async () => {
  const shuffled = table.chain((entries) =>
    fc.tuple(
      fc.constant(entries),
      fc.shuffledSubarray(entries, { minLength: entries.length, maxLength: entries.length }),
    ),
  );
  fc.assert(
    fc.property(shuffled, fc.array(path, { minLength: 1, maxLength: 20 }), ([entries, other], targets) => {
      const one = createRouter(entries);
      const two = createRouter(other);
      for (const target of targets) assert.deepEqual(one.find('GET', target), two.find('GET', target));
    }),
    { numRuns: cases(500) },
  );
});
