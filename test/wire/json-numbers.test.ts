import { test } from 'tap';
import { numberNames, readNumbers } from '../../src/wire/json-numbers.js';
import { lastObjectStart, lastWordOf, needleOf } from '../../src/wire/json-skip.js';
import { fc } from '../support/seed.js';

const wanted = numberNames(['a', 'bc']);

function read(text: string): number[] | null {
  const values: number[] = [];
  return readNumbers(Buffer.from(text), text.indexOf('{'), wanted, values) === -1 ? null : values;
}

test('whole numbers are read by name, at any depth', async (t) => {
  t.same(read('{"a":1,"bc":22}'), [1, 22]);
  t.same(read(' { "x" : { "bc" :\n7 } , "a" : 0 } tail'), [0, 7]);
  t.same(read('{"a":1,"x":{"a":2}}'), [1, -1], 'the first counts');
  t.same(read('{"bc":9007199254740991}'), [-1, 9007199254740991]);
});

test('what is no whole number is not read', async (t) => {
  for (const value of [
    '-1',
    '-1.5',
    '1.5e3',
    '1.',
    '1e3',
    '"1"',
    'null',
    'true',
    '{}',
    '[1]',
    '99999999999999999',
  ])
    t.same(read(`{"a":${value}}`), [-1, -1], value);
});

test('of a fraction the whole number below it is read', async (t) => {
  for (const [value, whole] of [
    ['1.5', 1],
    ['12.0', 12],
    ['0.25', 0],
  ] as const)
    t.same(read(`{"a":${value},"bc":3}`), [whole, 3], value);
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

test('in a scope names mean what they mean there, and elsewhere what they mean at any depth', async (t) => {
  const scoped = numberNames(
    ['a', 'b'],
    [
      { objects: ['in', 'input'], names: ['a', 'c'] },
      { objects: ['out'], names: ['a'] },
      { objects: ['inner'], names: ['a'] },
    ],
  );
  const of = (value: object): number[] => {
    const values: number[] = [];
    readNumbers(Buffer.from(JSON.stringify(value)), 0, scoped, values);
    return values;
  };
  t.same(of({ in: { a: 1, b: 2, c: 3 }, out: { a: 4, c: 9 }, a: 5 }), [5, 2, 1, 3, 4, -1]);
  t.same(of({ input: { x: { a: 1 }, inner: { a: 2, c: 9 }, c: 3 }, a: 4 }), [4, -1, 1, 3, -1, 2]);
  t.same(of({ in: 7, out: [{ a: 1 }], c: 9 }), [1, -1, -1, -1, -1, -1], 'what is no object is no scope');
  t.same(of({ out: { inner: { y: [1, { a: 2 }] }, a: 3 }, in: {}, b: 4 }), [-1, 4, -1, -1, 3, 2]);
});

test('the last word of a key is read, wherever it stands', async (t) => {
  const key = needleOf('"tier"');
  const wordOf = (text: string): string | null => lastWordOf(Buffer.from(text), key);
  t.equal(wordOf('{"tier":"a","x":{"tier" : "b c"}}'), 'b c');
  t.equal(wordOf(`{"tier":"a"${' '.repeat(5000)}}`), 'a');
  for (const value of ['null', '1', '"a', `"${'x'.repeat(70)}"`, '"a\\nb"', '{"tier"'])
    t.equal(wordOf(`{"tier":${value}`), null, value);
  t.equal(wordOf('{"text":"\\"tier\\":\\"x\\""}'), null);
  t.equal(wordOf(''), null);
});
