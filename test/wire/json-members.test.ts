import { test } from 'tap';
import { withoutMembers } from '../../src/wire/json-skip.js';
import { fc } from '../support/seed.js';

const names = new Set(['type', 'stream']);

function without(text: string): string | null {
  const found = withoutMembers(Buffer.from(text), names);
  return found === null ? null : `{${Buffer.concat([...found.rest])}}`;
}

test('the members of some names are taken out, and the others stay as they came', async (t) => {
  t.equal(without('{"type":"a"}'), '{}');
  t.equal(without(' { "a" : 1.0 , "type" : "x", "b":[ {"type":1} ] } '), '{"a" : 1.0,"b":[ {"type":1} ]}');
  t.equal(without('{"stream":true,"a":12345678901234567890}'), '{"a":12345678901234567890}');
  t.equal(without('{"a":"type","t\\u0079pe":{"x":[1,2]},"type ":0}'), '{"a":"type","type ":0}');
  t.equal(without('{}'), '{}');
  const { taken } = withoutMembers(Buffer.from('{"type":"a","type": "b" }'), names) ?? {};
  t.equal(taken?.get('type'), '"b"');
});

test('members that stay side by side stay in one piece', async (t) => {
  const runs = (text: string) => withoutMembers(Buffer.from(text), names)?.rest.map(String);
  t.strictSame(runs('{"a":1, "b":2,"type":3,"c":4,"d":5}'), ['"a":1, "b":2', ',', '"c":4,"d":5']);
  t.strictSame(runs('{"type":3,"a":1,"stream":2}'), ['"a":1']);
});

test('what is no object gives nothing', async (t) => {
  for (const text of [
    '',
    ' ',
    '1',
    '[]',
    'null',
    '{',
    '{"a"',
    '{"a":}',
    '{"a":1,}',
    '{"a":1}x',
    '{a:1}',
    '{"a":1 "b":2}',
  ])
    t.equal(without(text), null, text);
});

test('on any object the result is the object without those members', async (t) => {
  const key = fc.oneof(fc.constantFrom('type', 'stream', 'model', ''), fc.string());
  fc.assert(
    fc.property(fc.dictionary(key, fc.jsonValue()), fc.constantFrom(0, 1, 2), (object, indent) => {
      const expected = Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)));
      t.same(JSON.parse(without(JSON.stringify(object, null, indent)) ?? 'null'), expected);
    }),
  );
});
