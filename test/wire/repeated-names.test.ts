import { test } from 'tap';
import { hasRepeatedNames } from '../../src/wire/repeated-names.js';

test('a name that an object has twice is found at any depth and in any spelling', async (t) => {
  for (const [text, isRepeated] of [
    ['{}', false],
    [' { "a" : 1 , "b" : [ 1 , { "a" : "a" } , [ ] ] , "c" : { } } ', false],
    ['{"a":{"a":1},"b":{"a":1}}', false],
    ['{"a":"\\"a\\":1,","b":"{"}', false],
    ['{"A":1,"a":1}', false],
    ['{"a":1,"a":1}', true],
    ['{"a":1,"\\u0061":1}', true],
    ['{"b":{"a":1,"c":2,"a":1}}', true],
    ['{"b":[{},[{"a":1,"a":1}]]}', true],
    ['[{"a":1},{"a":1}]', false],
    [`${'['.repeat(70)}${']'.repeat(70)}`, true],
  ] as const)
    t.equal(hasRepeatedNames(Buffer.from(text)), isRepeated, text);
});
