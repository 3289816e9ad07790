import { test } from 'tap';
import { findJsonFault, invalidJson } from '../../src/wire/json-fault.js';
import { cases, fc } from '../support/seed.js';
import { anyJson, noise, parsed, writeJson } from './json-text.js';

test('the position of a fault is the byte that is wrong', (t) => {
  const faults: [string, number][] = [
    ['', 0],
    ['{', 1],
    ['{"a":tru}', 8],
    ['{"a" 1}', 5],
    ['{"a":1,}', 7],
    ['[1,]', 3],
    ['[1 2]', 3],
    ['{"a":1]', 6],
    ['{a:1}', 1],
    ["{'a':1}", 1],
    ['{"a":01}', 6],
    ['{"a":1.}', 7],
    ['{"a":1e+}', 8],
    ['{"a":-}', 6],
    ['{"a":"\n"}', 6],
    ['{"a":"\\x"}', 7],
    ['{"a":"\\u12g4"}', 10],
    ['{"a":"b', 7],
    ['{"a":NaN}', 5],
    ['{"a":1} x', 8],
    ['{"é":x}', 6],
  ];
  for (const [text, offset] of faults) t.equal(findJsonFault(Buffer.from(text))?.offset, offset, text);
  t.end();
});

test('the message names byte, line, column and what was expected, and quotes no more than one character', (t) => {
  const error = invalidJson(Buffer.from('{\n  "model": "m",\n  "secret" "s"\n}'));
  t.match(error, { kind: 'invalid_json', status: 400 });
  t.equal(
    error.message,
    "The request body is not valid JSON: at byte 29 (line 3, column 12) expected ':' after the key, found '\"'.",
  );
  t.match(invalidJson(Buffer.from('{"a":1')).message, 'found the end of the body');
  t.match(invalidJson(Buffer.from([0xff, 0xfe])).message, 'found byte 0xff');
  t.end();
});

test('a fault is found exactly where JSON.parse refuses', (t) => {
  const mutation = fc.tuple(fc.nat(), fc.constantFrom(...'"\\{}[],:0 1e.-tn\n\t\u0001x'), fc.boolean());
  fc.assert(
    fc.property(anyJson, noise, fc.array(mutation, { maxLength: 2 }), (value, next, mutations) => {
      let text = writeJson(value, next);
      for (const [at, by, insert] of mutations) {
        const index = at % (text.length + 1);
        text = text.slice(0, index) + by + text.slice(insert ? index : index + 1);
      }
      const body = Buffer.from(text);
      return (findJsonFault(body) === null) === (parsed(body) !== undefined);
    }),
    { numRuns: cases(3000) },
  );
  t.pass();
  t.end();
});
