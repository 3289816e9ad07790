import assert from 'node:assert/strict';
import { test } from 'tap';
import { MemberValue } from '../../../src/conversation/fit/member-reader.js';
import { cases, fc } from '../../support/seed.js';

function read(...pieces: string[]): string {
  const reader = new MemberValue('value');
  return pieces.map((piece) => reader.add(piece)).join('') + reader.end();
}

test('the value leaves as it is written', async (t) => {
  const reader = new MemberValue('value');
  t.equal(reader.add('{ "val'), '');
  t.equal(reader.add('ue": ['), '[');
  t.equal(reader.add('{"a":"]"'), '{"a":"]"');
  t.equal(reader.add('}, 1]'), '}, 1]');
  t.equal(reader.add(' }'), '');
  t.equal(reader.end(), '');
});

test('values of every kind come out as they were', async (t) => {
  for (const value of ['"a\\"}"', '""', '12345678901234567890', 'true', 'null', '[]', '{}', '[[1],"]"]'])
    t.equal(read(`{"value":${value}}`), value);
});

test('what is no such object is the value itself', async (t) => {
  t.equal(read('[1', ',2]'), '[1,2]');
  t.equal(read('no JSON'), 'no JSON');
  t.equal(read('{"other":1}'), '{"other":1}');
  t.equal(read('{"other":1,"value":[2]}'), '[2]');
  t.equal(read(''), '');
  const long = `{"${'x'.repeat(300)}":1,`;
  t.equal(read(long, '"value":"a"}'), '"a"');
});

test('wherever it is cut, the value is the same', async () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(2), fc.array(fc.nat(9)), (value, space, cuts) => {
      const text = JSON.stringify({ value }, null, space);
      const pieces: string[] = [];
      let rest = text;
      for (const cut of cuts) {
        pieces.push(rest.slice(0, cut));
        rest = rest.slice(cut);
      }
      const taken = read(...pieces, rest);
      assert.deepEqual(JSON.parse(taken), JSON.parse(JSON.stringify(value)));
      assert.ok(text.includes(taken));
    }),
    { numRuns: cases(1000) },
  );
});
