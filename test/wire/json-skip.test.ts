import assert from 'node:assert/strict';
import { test } from 'tap';
import { contains, endOfPlain, endOfText, endOfValue, needleAt, needleOf } from '../../src/wire/json-skip.js';
import { cases, fc } from '../support/seed.js';
import { anyJson, noise, parsed, writeJson } from './json-text.js';

const end = (text: string, levels = 64) => endOfValue(Buffer.from(text), 0, levels);

test('a value is skipped to its end, with any space and any escapes', (t) => {
  fc.assert(
    fc.property(anyJson, noise, (value, numbers) => {
      const text = writeJson(value, numbers).trim();
      assert.equal(end(`${text},`), Buffer.byteLength(text), text);
    }),
    { numRuns: cases(500) },
  );
  t.end();
});

test('what is skipped, JSON.parse takes too', (t) => {
  const short = fc.string({
    unit: fc.constantFrom(...'"\\{}[]:,0123eE+-.truefalsn /u\n\x01'),
    maxLength: 14,
  });
  let good = 0;
  fc.assert(
    fc.property(short, (text) => {
      const body = Buffer.from(text);
      const whole = endOfValue(body, 0, 64) === body.length;
      if (whole) good++;
      assert.equal(whole, parsed(body) !== undefined && text.trim() === text, text);
    }),
    { numRuns: cases(20_000) },
  );
  t.ok(good > cases(20));
  t.end();
});

test('numbers, literals and escapes keep to the grammar', (t) => {
  const good = [
    '0',
    '-0',
    '10',
    '1.5',
    '1e5',
    '1E+5',
    '-1.0e-10',
    'true',
    'false',
    'null',
    '"\\u00eF"',
    '"\\/"',
  ];
  for (const text of good) t.equal(end(text), text.length, text);
  const bad = [
    '-',
    '.5',
    '1.',
    '1e',
    '1e+',
    '+1',
    'tru',
    'nulL',
    'falsy',
    '"\\u00g0"',
    '"\\u00',
    '"\\',
    '"',
    '',
    '"a\tb"',
  ];
  for (const text of bad) t.equal(end(text), -1, text);
  t.equal(end('01'), 1);
  t.end();
});

test('nesting ends at the given level', (t) => {
  t.equal(end('[[1]]', 2), 5);
  t.equal(end('[[1]]', 1), -1);
  t.equal(end('{"a":{}}', 1), -1);
  t.equal(end('1', 0), 1);
  t.end();
});

test('the inside of a long string is not looked at', (t) => {
  const filler = 'x'.repeat(255);
  t.equal(endOfText(Buffer.from(`${filler}\x01"`), 0), -1);
  t.equal(endOfText(Buffer.from(`${filler}x\x01"`), 0), 257);
  t.equal(endOfText(Buffer.from(`${filler}\\"\\\\" "`), 0), 259);
  t.end();
});

test('a plain string has no escapes', (t) => {
  t.equal(endOfPlain(Buffer.from('aé"b'), 0), 3);
  t.equal(endOfPlain(Buffer.from('a\\n"'), 0), -1);
  t.equal(endOfPlain(Buffer.from('abc'), 0), -1);
  t.end();
});

test('what is searched for is found from its rarest character, and only as a whole', async (t) => {
  for (const [text, part] of [
    ['"service_tier"', 'vice_ti'],
    ['"gw1.', 'gw1.'],
    ['__thought__Z3cx', 'Z3cx'],
    ['"speed"', 'peed"'],
    ['"rate"', 'rate"'],
    ['sk-é-key_Q0123456789', 'Q012345'],
  ] as const) {
    const needle = needleOf(text);
    t.equal(needle.part.toString(), part);
    t.ok(contains(Buffer.from(`{${text}`), needle));
    t.ok(contains(Buffer.from(`${part} ${text}`), needle));
    t.notOk(contains(Buffer.from(`{${part}`), needle), 'a part alone is not it');
    t.notOk(contains(Buffer.from(text.slice(0, -1)), needle));
  }
});

test('every place of a needle is found, and none where a part of it stands alone', (t) => {
  const needle = needleOf('"signature"');
  const part = needle.part.toString();
  const bytes = Buffer.from(`${part} "signature":"" x${part} "signature""signature"`);
  const places: number[] = [];
  for (let at = needleAt(bytes, needle, 0); at !== -1; at = needleAt(bytes, needle, at + 1)) places.push(at);
  const whole = Array.from(bytes.toString().matchAll(/"signature"/g), ({ index }) => index);
  t.same(places, whole);
  t.equal(places.length, 3);
  t.equal(needleAt(bytes, needle, bytes.length), -1);
  t.end();
});

test('bytes that are full of a part of a needle are searched for the whole of it', (t) => {
  const needle = needleOf('__thought__Z3cx');
  const unit = needle.part.toString();
  const bytes = Buffer.from(`${unit.repeat(10_000)}${needle.whole}${unit.repeat(10)}`);
  const search = bytes.indexOf.bind(bytes);
  let searches = 0;
  Object.defineProperty(bytes, 'indexOf', {
    value: (wanted: Buffer, from: number) => {
      searches++;
      return search(wanted, from);
    },
  });
  const at = unit.length * 10_000;
  t.equal(needleAt(bytes, needle, 0), at);
  t.ok(searches < 1000, `${searches} searches`);
  t.equal(needleAt(bytes, needle, at + 1), -1);
  t.end();
});
