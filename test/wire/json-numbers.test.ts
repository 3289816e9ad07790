import { test } from 'tap';
import { lastObjectStart, numberNames, readNumbers } from '../../src/wire/json-skip.js';
import { fc } from '../support/seed.js';

const wanted = numberNames(['a', 'bc']);

function read(text: string): number[] | null {
  const values: number[] = [];
  return readNumbers(Buffer.from(text), text.indexOf('{'), wanted, values) ? values : null;
}

test('whole numbers are read by name, at any depth', async (t) => {
  t.same(read('{"a":1,"bc":22}'), [1, 22]);
  t.same(read(' { "x" : { "bc" :\n7 } , "a" : 0 } tail'), [0, 7]);
  t.same(read('{"a":1,"x":{"a":2}}'), [1, -1], 'the first counts');
  t.same(read('{"bc":9007199254740991}'), [-1, 9007199254740991]);
});

test('what is no whole number is not read', async (t) => {
  for (const value of ['-1', '1.5', '1e3', '"1"', 'null', 'true', '{}', '[1]', '99999999999999999'])
    t.same(read(`{"a":${value}}`), [-1, -1], value);
});

test('names inside strings are no names', async (t) => {
  t.same(read('{"x":"\\"a\\":5","y":["a",1],"bc":2}'), [-1, 2]);
  t.same(read('{"a\\u0062":5}'), [-1, -1]);
});

test('an object that does not close gives nothing', async (t) => {
  for (const text of ['{', '{"a":1', '{"a":1,"x":{}', '{"a":"', '{"a":"\\']) t.equal(read(text), null, text);
});

test('the numbers of any object are those that a parse gives', async (t) => {
  const value = fc.record({ a: fc.option(fc.maxSafeNat()), text: fc.string(), bc: fc.nat() });
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, 1, '\t'), (object, space) => {
      const values = read(JSON.stringify(object, null, space));
      return values?.[0] === (object.a ?? -1) && values[1] === object.bc;
    }),
  );
  t.pass();
});

test('the last object of a name is found from the end, however far away', async (t) => {
  const key = Buffer.from('"usage"');
  for (const tail of [0, 10, 2030, 2040, 2048, 2049, 10_000, 100_000]) {
    const before = `{"usage":{"a":1},"x":"${'y'.repeat(50)}","usage" : `;
    const text = Buffer.from(`${before}{"a":2}${' '.repeat(tail)}}`);
    t.equal(lastObjectStart(text, key), before.length, `${tail} bytes behind it`);
  }
  t.equal(lastObjectStart(Buffer.from('{"usage":{"a":1},"usage":null}'), key), 9);
  t.equal(lastObjectStart(Buffer.from('{"usage":null}'), key), -1);
  t.equal(lastObjectStart(Buffer.from(' '.repeat(5000)), key), -1);
  t.equal(lastObjectStart(Buffer.alloc(0), key), -1);
});
