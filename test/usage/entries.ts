import fc from 'fast-check';
import type { Protocol } from '../../src/config/types.js';
import { outcomes, tokenSources, type UsageEntry, type UsageNote } from '../../src/usage/entry.js';

/** An entry of which only that is said which a test is about. */
export function usageEntry(change: Partial<UsageEntry> = {}): UsageEntry {
  return {
    at: Date.UTC(2026, 2, 9, 12),
    requestId: 'req-1',
    keyId: 'team-a',
    groups: ['default'],
    protocol: 'chat',
    model: 'sim-text',
    target: 'main/gpt',
    status: 200,
    outcome: 'complete',
    inputTokens: 100,
    outputTokens: 20,
    cachedTokens: 60,
    cacheWrittenTokens: 0,
    reasoningTokens: 5,
    tokensKnown: 'exact',
    bytesIn: 400,
    bytesOut: 900,
    mediaSeconds: 0,
    durationMs: 812.5,
    firstByteMs: 120.25,
    retries: 0,
    costNanoUsd: 1500,
    ...change,
  };
}

/** An entry as its call notes it; its id has no number. */
export function noteOf({ requestId, protocol, firstByteMs, ...entry }: UsageEntry): UsageNote {
  return {
    ...entry,
    requestSeries: requestId,
    requestNumber: -1,
    protocol: protocol as Protocol | null,
    firstByteMs: firstByteMs ?? -1,
    ownMs: -1,
  };
}

/** A note of which only that is said which a test is about. */
export function usageNote(change: Partial<UsageEntry> = {}): UsageNote {
  return noteOf(usageEntry(change));
}

/** The entry that a line of an export is of. */
export function entryOfLine(line: string): UsageEntry {
  const entry = JSON.parse(line) as Omit<UsageEntry, 'at'> & { readonly at: string };
  return { ...entry, at: Date.parse(entry.at) };
}

const anyName = fc.option(fc.string({ unit: 'binary' }));
const anyCount = fc.nat();
/** Whole microseconds, in milliseconds. */
const anyDuration = fc.nat().map((microseconds) => microseconds / 1000);

/** Entries with any names and numbers. */
export const anyEntry: fc.Arbitrary<UsageEntry> = fc.record(
  {
    at: fc.integer({ min: 0, max: 8.64e15 }),
    requestId: fc.string({ unit: 'binary' }),
    keyId: anyName,
    groups: fc.array(fc.string()),
    protocol: anyName,
    model: anyName,
    target: anyName,
    status: anyCount,
    outcome: fc.constantFrom(...outcomes),
    inputTokens: anyCount,
    outputTokens: anyCount,
    cachedTokens: anyCount,
    cacheWrittenTokens: anyCount,
    reasoningTokens: anyCount,
    tokensKnown: fc.constantFrom(...tokenSources),
    bytesIn: anyCount,
    bytesOut: anyCount,
    mediaSeconds: fc.double({ min: 0, max: 1e6, noNaN: true }),
    durationMs: anyDuration,
    firstByteMs: fc.option(anyDuration),
    retries: anyCount,
    costNanoUsd: fc.maxSafeNat(),
  },
  { noNullPrototype: true },
);
