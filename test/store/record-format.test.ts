import { test } from 'tap';
import {
  collectionKey,
  expiryKey,
  nameKey,
  readExpiryKey,
  readRecord,
  recordKey,
  writeRecord,
} from '../../src/store/record-format.js';
import { fc } from '../support/seed.js';

const text = fc.string({ unit: 'grapheme', maxLength: 700 });
const time = fc.integer({ min: 0, max: 8_640_000_000_000_000 });
const collection = fc.stringMatching(/^[a-z-]{1,10}$/);

test('a record that was written reads the same', async () => {
  fc.assert(
    fc.property(text, text, time, fc.maxSafeNat(), (id, value, expiresAt, revision) => {
      const record = { id, value, expiresAt, revision };
      const read = readRecord(writeRecord(record));
      return JSON.stringify(read) === JSON.stringify({ expiresAt, revision, id, value });
    }),
  );
});

test('names of different texts differ, and none is too long for a key', async () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const [first, second] = [nameKey(a), nameKey(b)];
      return first.equals(second) === (a === b) && first.length <= 501 && second.length <= 501;
    }),
  );
});

test('keys of expiry sort by time within their collection, and come apart again', async () => {
  fc.assert(
    fc.property(collection, collection, time, time, text, (a, b, one, two, id) => {
      const [first, second] = [expiryKey(a, one, nameKey(id)), expiryKey(a, two, nameKey(id))];
      const read = readExpiryKey(first);
      const other = expiryKey(b, two, nameKey(id));
      return (
        Math.sign(first.compare(second)) === Math.sign(one - two) &&
        (a === b ||
          Math.sign(first.compare(other)) === Math.sign(collectionKey(a).compare(collectionKey(b)))) &&
        expiryKey(a, one).compare(first) < 0 &&
        read.collection === a &&
        read.expiresAt === one &&
        recordKey(a, read.name).equals(recordKey(a, nameKey(id)))
      );
    }),
  );
});
