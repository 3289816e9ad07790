import { test } from 'tap';
import { packColumns, unpackColumns } from '../../src/usage/page.js';
import { fc } from '../support/seed.js';

const numbers = fc.oneof(
  fc.nat(300),
  fc.nat(70_000),
  fc.nat(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double(),
  fc.constantFrom(0, -1, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 1e300),
);

/** Tables whose columns are of all kinds. */
const tables = fc
  .integer({ min: 1, max: 6 })
  .chain((rowLength) =>
    fc
      .tuple(fc.constant(rowLength), fc.nat(20))
      .chain(([columns, count]) =>
        fc.tuple(
          fc.constant(columns),
          fc.constant(count),
          fc.array(numbers, { minLength: columns * count, maxLength: columns * count }),
        ),
      ),
  );

/** Zero has no sign in a column. */
const unsigned = (values: Iterable<number>): number[] => [...values].map((value) => value + 0);

test('rows come back from their columns as they were', async (t) => {
  fc.assert(
    fc.property(tables, ([rowLength, count, values]) => {
      const packed = packColumns(Float64Array.from(values), rowLength, rowLength, count);
      const rows = unpackColumns(Buffer.from(packed), rowLength, count);
      t.strictSame(rows && unsigned(rows), unsigned(values));
    }),
  );
});

test('of a row only so many numbers are packed', async (t) => {
  const packed = Buffer.from(packColumns(Float64Array.of(1, 2, 3, 4, 5, 6), 3, 2, 2));
  t.same([...(unpackColumns(packed, 2, 2) ?? [])], [1, 2, 4, 5]);
});

test('columns are as narrow as their numbers let them be', async (t) => {
  const sizeOf = (...values: number[]) => packColumns(Float64Array.from(values), 1, 1, values.length).length;
  const least = 2 ** 40;
  t.equal(sizeOf(7, 7, 7), 9);
  t.equal(sizeOf(least, least + 255), 9 + 2);
  t.equal(sizeOf(least, least + 256), 9 + 4);
  t.equal(sizeOf(least, least + 65_536), 9 + 8);
  t.equal(sizeOf(least, least + 2 ** 32), 9 + 16);
  t.equal(sizeOf(1, 1.5), 9 + 16);
  t.equal(sizeOf(Number.NaN), 9 + 8);
});

test('bytes that are not of so many columns and rows are nothing', async (t) => {
  const packed = Buffer.from(packColumns(Float64Array.of(1, 2, 3, 4), 2, 2, 2));
  t.same([...(unpackColumns(packed, 2, 2) ?? [])], [1, 2, 3, 4]);
  t.equal(unpackColumns(packed.subarray(0, -1), 2, 2), null);
  t.equal(unpackColumns(Buffer.concat([packed, Buffer.of(0)]), 2, 2), null);
  t.equal(unpackColumns(Buffer.from(packed.with(0, 3)), 2, 2), null, 'a width that none has');
  t.equal(unpackColumns(Buffer.alloc(0), 1, 0), null);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(3), fc.nat(8), (bytes, rowLength, count) => {
      unpackColumns(Buffer.from(bytes), rowLength, count);
    }),
  );
});
