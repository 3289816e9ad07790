import fc from 'fast-check';
import { test } from 'tap';
import { writeNumbers } from '../../src/usage/number-text.js';

const lengths = Array.from({ length: 17 }, (_, digits) => 10 ** digits);
const edges = [
  ...lengths.flatMap((length) => [length - 1, length, length + 1, -length, length + 0.5]),
  ...[2 ** 31 - 1, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, -Number.MIN_VALUE, 1e-7, -0],
  ...[Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
];

test('numbers are written as JSON has them', async (t) => {
  const written = (numbers: readonly number[]) =>
    `[${writeNumbers(Float64Array.from(numbers), numbers.length)}]`;
  t.equal(written(edges), JSON.stringify(edges));
  const number = fc.oneof(fc.nat(), fc.maxSafeInteger(), fc.double(), fc.constantFrom(...edges));
  fc.assert(
    fc.property(fc.array(number), (numbers) => {
      t.equal(written(numbers), JSON.stringify(numbers));
    }),
  );
});

test('only so many are written, and a text does not change with the next one', async (t) => {
  const numbers = Float64Array.of(1, 22, 333, 4444);
  const first = writeNumbers(numbers, 3);
  t.equal(writeNumbers(numbers, 0), '');
  t.equal(writeNumbers(Float64Array.of(9, 9, 9, 9, 9), 5), '9,9,9,9,9');
  t.equal(first, '1,22,333');
});
