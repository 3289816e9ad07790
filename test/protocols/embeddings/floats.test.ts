import { test } from 'tap';
import { readFloats } from '../../../src/protocols/embeddings/encoding.js';
import { fc } from '../../support/seed.js';

const read = (text: string) => {
  const found = readFloats(Buffer.from(text), 0);
  return found === null ? null : { values: Array.from(found.values), end: found.end };
};
const single = (text: string) => Array.from(Float32Array.from(JSON.parse(text)));

test('numbers in every spelling of JSON become the nearest single', async (t) => {
  const spellings = [
    '[]',
    '[ ]',
    '[0,-0,1,-1]',
    '[ 0.1 ,\n-0.25\t, 1e-7,1E+3, -2.5e-05 ]',
    '[0.012345678901234567,-0.006929283495992422,123456789012345678901234567890]',
    '[1e-46,3.4e38,0.00000000000000000000000000001]',
    // Halfway between two singles, and just beside it.
    '[1.000000059604644775390625,1.0000000596046448,1.0000000596046449,16777217]',
  ];
  for (const text of spellings) t.strictSame(read(text), { values: single(text), end: text.length }, text);
});

test('reading stops after the closing bracket', async (t) => {
  t.equal(read('[1,2],"index":[')?.end, 5);
});

test('what is no flat array of numbers is none', async (t) => {
  const texts = ['"AAAA"', '[[1]]', '[null]', '["1"]', '[1,]', '[1 2]', '[1', '[', '[,1]', '[1.]', '[-]'];
  for (const text of [...texts, '[.5]', '[0x10]', '[NaN]', '[Infinity]', '[{}]', '[1.2.3]', '{}', ''])
    t.equal(read(text), null, text);
});

test('property: any list of numbers reads as JSON.parse and a rounding to single precision do', async (t) => {
  const numbers = fc.array(
    fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.double({ min: -1, max: 1, noNaN: true }),
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
    ),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(numbers, fc.boolean(), (list, indented) => {
      const text = JSON.stringify(list, null, indented ? 1 : 0);
      const found = read(text);
      t.strictSame(found?.values, single(text));
      return found?.end === text.length;
    }),
  );
});
