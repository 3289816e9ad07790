import fc from 'fast-check';
import type { Protocol, Target } from '../../src/config/types.js';
import type { Usage } from '../../src/conversation/usage.js';
import type { CallTimes } from '../../src/metrics/call-times.js';
import type { EndedCall } from '../../src/usage/ended-call.js';
import { outcomes, tokenSources, type UsageEntry } from '../../src/usage/entry.js';

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
  add(call: EndedCall, at: number, costNanoUsd: number): T;
}

/** Has the call taken that an entry is of, changed if need be. */
export function addEntry<T>(taker: CallTaker<T>, entry: UsageEntry, change: Partial<EndedCall> = {}): T {
  return taker.add({ ...callOf(entry), ...change }, entry.at, entry.costNanoUsd);
}

/** The same for an entry of which only that is said which a test is about. */
export function addUsage<T>(taker: CallTaker<T>, change: Partial<UsageEntry> = {}): T {
  return addEntry(taker, usageEntry(change));
}

const startedAt = 1000;

/** The call that an entry is of; its id has no number. What calls share is the same object in all of them. */
function callOf(entry: UsageEntry): EndedCall {
  const { keyId, groups, model, protocol, target, firstByteMs } = entry;
  return {
    exchange: {
      number: -1,
      id: entry.requestId,
      status: entry.status,
      bytesIn: entry.bytesIn,
      bytesOut: entry.bytesOut,
    },
    key: keyId === null ? null : shared('key', { id: keyId, groups }),
    route: protocol === null ? null : shared('route', { protocol: protocol as Protocol }),
    model: model === null ? null : shared('model', { name: model }),
    target: target === null ? null : shared('target', targetOf(target)),
    outcome: entry.outcome,
    usage: usageOf(entry),
    isServed: true,
    mediaSeconds: entry.mediaSeconds,
    retries: entry.retries,
    startedAt,
    sentAt: 0,
    answeredAt: firstByteMs === null ? 0 : startedAt + firstByteMs,
    endedAt: startedAt + entry.durationMs,
  };
}

const sharedObjects = new Map<string, unknown>();

function shared<T>(kind: string, value: T): T {
  const name = `${kind} ${JSON.stringify(value)}`;
  if (!sharedObjects.has(name)) sharedObjects.set(name, value);
  return sharedObjects.get(name) as T;
}

function targetOf(name: string): Target {
  const slash = name.indexOf('/');
  return { upstream: { name: name.slice(0, slash) }, model: name.slice(slash + 1) } as Target;
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
