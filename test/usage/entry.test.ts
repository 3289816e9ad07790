import { test } from 'tap';
import { entryFields, isEntry, isTime, type UsageEntryLike, writeEntry } from '../../src/usage/entry.js';
import { fc } from '../support/seed.js';
import { anyEntry, entryOfLine, usageEntry } from './entries.js';

test('a line is what JSON has for its entry, with its time for people, too', async (t) => {
  fc.assert(
    fc.property(anyEntry, (entry) => {
      const line = writeEntry(entry);
      const fields = Object.keys(JSON.parse(line) as object);
      t.same(
        fields,
        entryFields.map(([field]) => field),
      );
      return !/[\r\n]/.test(line) && writeEntry(entryOfLine(line)) === line;
    }),
  );
  t.same(entryOfLine(writeEntry(usageEntry())), usageEntry());
  t.match(JSON.parse(writeEntry(usageEntry())), {
    at: '2026-03-09T12:00:00.000Z',
    keyId: 'team-a',
    status: 200,
  });
  t.throws(() => writeEntry(usageEntry({ at: Number.NaN })), RangeError);
});

test('every field of an entry is a column', async (t) => {
  t.same(entryFields.map(([field]) => field).sort(), Object.keys(usageEntry()).sort());
});

test('what has another thing in a field is no entry', async (t) => {
  const good: UsageEntryLike = usageEntry();
  t.ok(isEntry(good));
  const wrong = {
    at: 'noon',
    keyId: 7,
    groups: [7],
    status: '200',
    outcome: 'good',
    firstByteMs: '1',
    costNanoUsd: Number.NaN,
    requestId: null,
  };
  for (const [field, value] of Object.entries(wrong)) {
    t.notOk(isEntry({ ...good, [field]: value }), field);
    t.notOk(isEntry({ ...good, [field]: undefined }), field);
  }
});

test('a time is one that a calendar has', async (t) => {
  for (const at of [0, Date.UTC(2026, 2, 9), 8.64e15]) {
    t.ok(isTime(at));
    t.doesNotThrow(() => new Date(at).toISOString());
  }
  for (const at of [-1, 0.5, Number.NaN, 8.64e15 + 1, Number.POSITIVE_INFINITY, '1', null])
    t.notOk(isTime(at));
});
