import assert from 'node:assert/strict';
import { test } from 'tap';
import { noPlace, SeriesTable } from '../../src/metrics/series.js';
import { fc } from '../support/seed.js';

const labels = ['protocol', 'model', 'status', 'outcome'];

function rows(table: SeriesTable): string[][] {
  return Array.from({ length: table.size }, (_, row) =>
    table.labels.slice(row * table.width, (row + 1) * table.width),
  );
}

test('a series has one number, and its labels stand where the number says', async (t) => {
  const table = new SeriesTable(labels, 100);
  t.equal(table.find('chat', 'a', 200, 'complete'), 0);
  t.equal(table.find('chat', 'a', 200, 'refused'), 1);
  t.equal(table.find('chat', 'b', 200, 'complete'), 2);
  t.equal(table.find('chat', 'a', 200, 'complete'), 0);
  t.same(rows(table)[2], ['chat', 'b', '200', 'complete']);
  t.equal(table.overflowed, 0);
});

test('a family without labels has its one series from the start', async (t) => {
  const table = new SeriesTable([], 100);
  t.equal(table.size, 1);
  t.equal(table.find(), 0);
  t.same(table.labels, []);
});

test('a table takes from one label to four', async (t) => {
  for (let width = 1; width <= 4; width++) {
    const table = new SeriesTable(labels.slice(0, width), 100);
    const values = ['a', 'b', 'c', 'd'].slice(0, width);
    t.equal(table.find(...values), 0);
    t.equal(table.find(...values), 0);
    t.same(table.labels, values);
  }
});

test('names of a config for which there is no room become other, and every such find is counted', async (t) => {
  const table = new SeriesTable(labels, 16);
  for (let i = 0; i < 13; i++) table.find('chat', `model-${i}`, 200, 'complete');
  t.equal(table.overflowed, 0);
  const other = table.find('chat', 'model-13', 200, 'complete');
  t.same(rows(table)[other], ['chat', 'other', '200', 'complete']);
  t.equal(table.find('chat', 'model-14', 200, 'complete'), other);
  t.equal(table.overflowed, 2);
  t.equal(table.find('chat', 'model-5', 200, 'complete'), 5);
  t.equal(table.overflowed, 2);
});

test('a series keeps its place until a renewal, and one that shares the number of others counts with each use of it', async (t) => {
  const table = new SeriesTable(labels, 16);
  const own = table.placeOf('chat', 'model-0', 200, 'complete');
  for (let i = 1; i < 13; i++) table.placeOf('chat', `model-${i}`, 200, 'complete');
  const shared = table.placeOf('chat', 'model-13', 200, 'complete');
  t.equal(table.overflowed, 0, 'to ask for a place is no use of it');
  t.equal(table.numberAt(own), 0);
  t.not(shared, noPlace);
  t.same(rows(table)[table.numberAt(shared)], ['chat', 'other', '200', 'complete']);
  t.equal(table.numberAt(shared), table.find('chat', 'model-14', 200, 'complete'));
  t.equal(table.overflowed, 3);
  for (let status = 300; status < 400; status++) table.placeOf('chat', 'model-0', status, 'complete');
  t.equal(table.placeOf('chat', 'model-13', 200, 'complete'), shared, 'whatever came since');
});

test('a series without a number takes that of one that is used less, and nobody else is moved', async (t) => {
  const table = new SeriesTable(labels, 16);
  for (let i = 0; i < 13; i++) table.numberAt(table.placeOf('chat', `model-${i}`, 200, 'complete'), 10 + i);
  const other = table.find('chat', 'model-13', 200, 'complete');
  t.same(table.renew(), [], 'one use is not enough');
  t.equal(table.renewals, 0, 'places hold');
  table.numberAt(table.placeOf('chat', 'model-13', 200, 'complete'), 100);
  t.same(table.renew(), [{ number: 0, shared: other }]);
  t.equal(table.renewals, 1);
  t.same(rows(table)[0], ['chat', 'model-13', '200', 'complete']);
  t.equal(table.find('chat', 'model-13', 200, 'complete'), 0);
  t.equal(table.find('chat', 'model-0', 200, 'complete'), other);
  t.equal(table.find('chat', 'model-1', 200, 'complete'), 1);
  t.equal(table.size, 14);
});

test('of those that have no number, so many are told apart as there may be series', async (t) => {
  const table = new SeriesTable(['key'], 16);
  for (let i = 0; i < 1000; i++) table.find(`key-${i}`);
  table.renew();
  t.equal(table.renewals, 1, 'half of them are forgotten');
  for (let i = 0; i < 50; i++) table.find('key-999');
  t.equal(table.renew().length, 1);
  t.equal(table.find('key-999') < 13, true);
});

test('when even those are too many there is one series for the rest', async (t) => {
  const table = new SeriesTable(labels, 16);
  for (let status = 100; status < 599; status++) table.find('chat', `model-${status}`, status, 'complete');
  t.equal(table.size, 16);
  const rest = table.find('chat', 'model-x', 599, 'complete');
  t.same(rows(table)[rest], ['other', 'other', 'other', 'other']);
  t.equal(table.overflowed, 499 - 13 + 1);
});

test('there is room for one series at least', async (t) => {
  const table = new SeriesTable(['model'], 1);
  t.equal(table.find('a'), 0);
  t.equal(table.find('b'), 0);
  t.same(table.labels, ['other']);
});

test('a model called other has its own counts and those of the rest', async (t) => {
  const table = new SeriesTable(['model'], 4);
  const named = table.find('other');
  table.find('a');
  table.find('b');
  t.equal(table.find('c'), named);
});

test('whatever comes, there are never more series than allowed, and nobody is moved', async () => {
  const value = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'other', '');
  const series = fc.tuple(value, value, fc.constantFrom(200, 404, 'none'), value);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.array(series, { maxLength: 200 }), (limit, all) => {
      const table = new SeriesTable(labels, limit);
      const numbers = new Map<string, number>();
      for (const each of all) {
        const number = table.find(...each);
        const name = JSON.stringify(each);
        assert.equal(number, numbers.get(name) ?? number);
        numbers.set(name, number);
        assert.ok(number < table.size && table.size <= limit);
      }
      assert.equal(
        new Set(rows(table).map((row) => JSON.stringify(row))).size,
        table.size,
        'no series twice',
      );
    }),
  );
});
