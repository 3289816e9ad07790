import assert from 'node:assert/strict';
import { test } from 'tap';
import { ObjectText } from '../../../src/conversation/fit/object-text.js';
import { cases, fc } from '../../support/seed.js';

function read(...pieces: string[]): string {
  const text = new ObjectText();
  return pieces.map((piece) => text.add(piece)).join('') + text.end().rest;
}

test('an object leaves as it comes', async (t) => {
  const text = new ObjectText();
  t.equal(text.add('{'), '');
  t.equal(text.add('"a": "x'), '{"a":"x');
  t.equal(text.add('y", "b": 1'), 'y","b":', 'a number may go on');
  t.equal(text.add('2.50}'), '12.50}');
  t.strictSame(text.end(), { rest: '', isBroken: false });
  t.equal(read('{"n":12345678901234567890}'), '{"n":12345678901234567890}');
});

test('what is no object is put into one', async (t) => {
  t.equal(read(''), '{}');
  t.equal(read(' \n'), '{}');
  t.equal(read('ls', ' -l\n'), '{"input":"ls -l\\n"}');
  t.equal(read('[1,', '2]'), '{"input":[1,2]}');
  t.equal(read('null'), '{"input":null}');
  t.equal(read("{'a': 1}"), '{"input":"{\'a\': 1}"}');
  t.equal(read('{'), '{"input":"{"}');
});

test('a long text that is no object is written as it comes', async (t) => {
  const long = 'x"'.repeat(600_000);
  const text = new ObjectText();
  const begin = text.add(long);
  t.ok(begin.startsWith('{"input":"x\\"'));
  t.strictSame(JSON.parse(begin + text.add('\n') + text.end().rest), { input: `${long}\n` });
});

test('an object that breaks off is closed', async (t) => {
  const cases: [string, string][] = [
    ['{"a', '{"a":null}'],
    ['{"a"', '{"a":null}'],
    ['{"a":', '{"a":null}'],
    ['{"a":1', '{"a":1}'],
    ['{"a":1.', '{"a":null}'],
    ['{"a":tru', '{"a":null}'],
    ['{"a":1,', '{"a":1}'],
    ['{"a":"b\\', '{"a":"b"}'],
    ['{"a":"b\\u00', '{"a":"b"}'],
    ['{"a":[1,{"b":"', '{"a":[1,{"b":""}]}'],
    ['{"a":[', '{"a":[]}'],
  ];
  for (const [given, wanted] of cases) {
    t.equal(read(given), wanted);
    const text = new ObjectText();
    text.add(given);
    t.ok(text.end().isBroken, given);
  }
});

test('what no object can hold ends it, and small faults in a text are mended', async (t) => {
  t.equal(read('{"a":1}{"a":2}'), '{"a":1}');
  t.equal(read('{"a":1} and more'), '{"a":1}');
  t.equal(read('{"a": foo, "b":1}'), '{"a":null}');
  t.equal(read('{"a":1,}'), '{"a":1}');
  t.equal(read('{"a":"x\ny"}'), '{"a":"x\\ny"}');
  t.equal(read('{"a":"C:\\dir\\u00zz"}'), '{"a":"C:\\\\dir\\\\u00zz"}');
  t.equal(read(`{"a":${'['.repeat(2000)}`), `{"a":${'['.repeat(999)}${']'.repeat(999)}}`);
});

test('whatever comes, in whatever pieces, becomes the same object', async () => {
  const text = fc.oneof(
    fc.json(),
    fc.object().map((value) => JSON.stringify(value, null, 1)),
    fc
      .tuple(fc.object({ maxDepth: 3 }), fc.nat(60))
      .map(([value, length]) => JSON.stringify(value).slice(0, length)),
    fc.string({ unit: fc.constantFrom(...'{}[]",:\\ u1truenlx\n') }),
  );
  fc.assert(
    fc.property(text, fc.array(fc.nat(20)), (given, cuts) => {
      const pieces: string[] = [];
      let rest = given;
      for (const cut of cuts) {
        pieces.push(rest.slice(0, cut));
        rest = rest.slice(cut);
      }
      const out = read(...pieces, rest);
      assert.equal(read(given), out);
      const value: unknown = JSON.parse(out);
      assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value));
      let meant: unknown;
      try {
        meant = JSON.parse(given);
      } catch {
        return;
      }
      if (typeof meant === 'object' && meant !== null && !Array.isArray(meant))
        assert.deepEqual(value, meant);
      else assert.deepEqual(value, { input: meant });
    }),
    { numRuns: cases(2000) },
  );
});
