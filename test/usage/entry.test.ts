import fc from 'fast-check';
import { test } from 'tap';
import {
  entryFields,
  outcomes,
  readEntry,
  tokenCounts,
  tokenSources,
  type UsageEntry,
  writeEntry,
} from '../../src/usage/entry.js';
import { usageEntry } from './entries.js';

const name = fc.option(fc.string({ unit: 'binary' }));
const count = fc.nat();
const entries: fc.Arbitrary<UsageEntry> = fc.record({
  at: fc.integer({ min: 0, max: 8.64e15 }),
  requestId: fc.string({ unit: 'binary' }),
  keyId: name,
  groups: fc.array(fc.string()),
  protocol: name,
  model: name,
  target: name,
  status: count,
  outcome: fc.constantFrom(...outcomes),
  inputTokens: count,
  outputTokens: count,
  cachedTokens: count,
  cacheWrittenTokens: count,
  reasoningTokens: count,
  tokensKnown: fc.constantFrom(...tokenSources),
  bytesIn: count,
  bytesOut: count,
  mediaSeconds: fc.double({ min: 0, max: 1e6, noNaN: true }),
  durationMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
  firstByteMs: fc.option(fc.double({ min: 0, max: 1e6, noNaN: true })),
  retries: count,
  costNanoUsd: fc.maxSafeNat(),
});

test('an entry comes back from its line as it was, on one line', async (t) => {
  fc.assert(
    fc.property(entries, (entry) => {
      const line = writeEntry(entry);
      const again = readEntry(line);
      return !/[\r\n]/.test(line) && again !== null && writeEntry(again) === line && again.at === entry.at;
    }),
  );
  t.same(readEntry(writeEntry(usageEntry())), usageEntry());
});

test('a line is what JSON has for its entry', async (t) => {
  fc.assert(
    fc.property(entries, (entry) => {
      const at = new Date(entry.at).toISOString();
      const expected = Object.fromEntries(
        entryFields.map(([field]) => [field, field === 'at' ? at : entry[field]]),
      );
      return writeEntry(entry) === JSON.stringify(expected);
    }),
  );
  const odd = usageEntry({ durationMs: Number.NaN, keyId: 'a"b\\' });
  t.match(JSON.parse(writeEntry(odd)), { durationMs: null, keyId: 'a"b\\' });
});

test('a line says its time for people, too', async (t) => {
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

test('a line that is no entry is none', async (t) => {
  const good = JSON.parse(writeEntry(usageEntry())) as Record<string, unknown>;
  const wrong = {
    at: 'noon',
    keyId: 7,
    groups: [7],
    status: '200',
    outcome: 'good',
    firstByteMs: '1',
    requestId: null,
  };
  for (const [field, value] of Object.entries(wrong)) {
    t.equal(readEntry(JSON.stringify({ ...good, [field]: value })), null, field);
    t.equal(readEntry(JSON.stringify({ ...good, [field]: undefined })), null, field);
  }
  for (const line of ['', '{', 'null', '1', '[]']) t.equal(readEntry(line), null);
  t.same(
    readEntry(JSON.stringify({ ...good, later: 1 })),
    usageEntry(),
    'what a later version has added is left out',
  );
});

test('tokens come from what was reported', async (t) => {
  t.same(tokenCounts({ input: 5, output: 4, cached: 3, cacheWritten: 2, reasoning: 1 }), {
    inputTokens: 5,
    outputTokens: 4,
    cachedTokens: 3,
    cacheWrittenTokens: 2,
    reasoningTokens: 1,
  });
  t.equal(tokenCounts(null).inputTokens, 0);
});
