import type { Protocol } from '../../src/config/types.js';
import type { Usage } from '../../src/conversation/usage.js';
import { type CallRecord, none, outcomes } from '../../src/metrics/call-record.js';
import type { CallTimes } from '../../src/metrics/call-times.js';
import { tokenSources, type UsageEntry } from '../../src/usage/entry.js';
import { callRecord } from '../suites/call-record.js';
import { fc } from '../support/seed.js';

/** An entry of which only that is said which a test is about. */
export function usageEntry(change: Partial<UsageEntry> = {}): UsageEntry {
  return {
    at: Date.UTC(2026, 2, 9, 12),
    requestId: 'req-1',
    keyId: 'team-a',
    groups: change.keyId === null ? [] : ['default'],
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

/** For what is not counted. */
export const uncounted = (): CallTimes => ({ observe() {} });

/** What takes calls that have ended. */
export interface CallTaker<T> {
  add(call: CallRecord, at: number): T;
}

/** Has the call taken that an entry is of, changed if need be. */
export function addEntry<T>(taker: CallTaker<T>, entry: UsageEntry, change: Partial<CallRecord> = {}): T {
  return taker.add({ ...recordOf(entry), ...change }, entry.at);
}

/** The same for an entry of which only that is said which a test is about. */
export function addUsage<T>(taker: CallTaker<T>, change: Partial<UsageEntry> = {}): T {
  return addEntry(taker, usageEntry(change));
}

/** The call that an entry is of; its id has no number. What calls share is the same object in all of them. */
function recordOf(entry: UsageEntry): CallRecord {
  return callRecord({
    ...entry,
    id: entry.requestId,
    groups: shared(entry.groups),
    protocol: entry.protocol as Protocol | null,
    usage: usageOf(entry),
    firstByteMs: entry.firstByteMs ?? none,
    ownMs: none,
  });
}

const sharedGroups = new Map<string, readonly string[]>();

function shared(groups: readonly string[]): readonly string[] {
  const name = JSON.stringify(groups);
  const known = sharedGroups.get(name) ?? groups;
  sharedGroups.set(name, known);
  return known;
}

function usageOf(entry: UsageEntry): Usage | null {
  const { tokensKnown } = entry;
  if (tokensKnown === 'none') return null;
  return {
    input: entry.inputTokens,
    output: entry.outputTokens,
    cached: entry.cachedTokens,
    cacheWritten: entry.cacheWrittenTokens,
    reasoning: entry.reasoningTokens,
    ...(tokensKnown === 'partial' ? { partial: true } : {}),
    ...(tokensKnown === 'estimated' ? { estimated: true } : {}),
  };
}

/** What an entry without tokens says of them. */
export const noTokens = {
  tokensKnown: 'none',
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  cacheWrittenTokens: 0,
  reasoningTokens: 0,
} as const;

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
export const anyEntry: fc.Arbitrary<UsageEntry> = fc
  .record(
    {
      at: fc.integer({ min: 0, max: 8.64e15 }),
      requestId: fc.string({ unit: 'binary' }),
      keyId: anyName,
      groups: fc.array(fc.string()),
      protocol: anyName,
      model: anyName,
      target: fc.option(fc.string({ unit: 'binary' }).map((name) => `main/${name}`)),
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
  )
  .map((entry) => ({
    ...entry,
    ...(entry.tokensKnown === 'none' ? noTokens : {}),
    ...(entry.keyId === null ? { groups: [] } : {}),
  }));
