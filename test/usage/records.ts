import type { Protocol } from '../../src/config/types.js';
import { noParts, serviceTiers, type Usage, withCharges } from '../../src/conversation/usage.js';
import { type CallRecord, none, outcomes, unknownCost } from '../../src/metrics/call-record.js';
import type { CallTimes } from '../../src/metrics/tables.js';
import { type LedgerRecord, tokenSources } from '../../src/usage/ledger-record.js';
import { callRecord } from '../support/call-record.js';
import { fc } from '../support/seed.js';

/** A record of which only that is said which a test is about. */
export function ledgerRecord(change: Partial<LedgerRecord> = {}): LedgerRecord {
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
    audioInputTokens: 0,
    audioOutputTokens: 0,
    imageInputTokens: 0,
    imageOutputTokens: 0,
    cachedAudioTokens: 0,
    cachedImageTokens: 0,
    cacheWrittenHourTokens: 0,
    searches: 0,
    tier: 'standard',
    tokensKnown: 'exact',
    bytesIn: 400,
    bytesOut: 900,
    mediaSeconds: 0,
    durationMs: 812.5,
    firstByteMs: 120.25,
    retries: 0,
    units: 1,
    costNanoUsd: 1500,
    paidNanoUsd: null,
    videoInputTokens: 0,
    geo: null,
    characters: 0,
    ...change,
  };
}

/** For what is not counted. */
export const uncounted = (): CallTimes => ({ observe() {} });

/** What takes calls that have ended. */
interface CallTaker<T> {
  add(call: CallRecord, at: number): T;
}

/** Has the call taken that a record is of, changed if need be. */
export function addRecord<T>(taker: CallTaker<T>, record: LedgerRecord, change: Partial<CallRecord> = {}): T {
  return taker.add({ ...recordOf(record), ...change }, record.at);
}

/** The same for a record of which only that is said which a test is about. */
export function addUsage<T>(taker: CallTaker<T>, change: Partial<LedgerRecord> = {}): T {
  return addRecord(taker, ledgerRecord(change));
}

/** The call that a record is of; its id has no number. What calls share is the same object in all of them. */
function recordOf(record: LedgerRecord): CallRecord {
  return callRecord({
    ...record,
    id: record.requestId,
    groups: shared(record.groups),
    protocol: record.protocol as Protocol | null,
    usage: usageOf(record),
    firstByteMs: record.firstByteMs ?? none,
    ownMs: none,
    paidNanoUsd: record.paidNanoUsd ?? unknownCost,
  });
}

const sharedGroups = new Map<string, readonly string[]>();

function shared(groups: readonly string[]): readonly string[] {
  const name = JSON.stringify(groups);
  const known = sharedGroups.get(name) ?? groups;
  sharedGroups.set(name, known);
  return known;
}

function usageOf(record: LedgerRecord): Usage | null {
  const { tokensKnown } = record;
  if (tokensKnown === 'none') return null;
  const usage = {
    input: record.inputTokens,
    output: record.outputTokens,
    cached: record.cachedTokens,
    cacheWritten: record.cacheWrittenTokens,
    reasoning: record.reasoningTokens,
    ...(tokensKnown === 'partial' ? { partial: true as const } : {}),
    ...(tokensKnown === 'estimated' ? { estimated: true as const } : {}),
  } satisfies Usage;
  return withCharges(usage, {
    searches: record.searches,
    parts: {
      ...noParts,
      audioInput: record.audioInputTokens,
      audioOutput: record.audioOutputTokens,
      imageInput: record.imageInputTokens,
      videoInput: record.videoInputTokens,
      imageOutput: record.imageOutputTokens,
      cachedAudio: record.cachedAudioTokens,
      cachedImage: record.cachedImageTokens,
      cacheWrittenHour: record.cacheWrittenHourTokens,
    },
    tier: record.tier === 'standard' ? null : record.tier,
    geo: record.geo,
  });
}

/** What a record without tokens says of them. */
export const noTokens = {
  tokensKnown: 'none',
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  cacheWrittenTokens: 0,
  reasoningTokens: 0,
  audioInputTokens: 0,
  audioOutputTokens: 0,
  imageInputTokens: 0,
  imageOutputTokens: 0,
  cachedAudioTokens: 0,
  cachedImageTokens: 0,
  cacheWrittenHourTokens: 0,
  videoInputTokens: 0,
  searches: 0,
  tier: 'standard',
  geo: null,
} as const;

/** The record that a line of an export is of. */
export function recordOfLine(line: string): LedgerRecord {
  const record = JSON.parse(line) as Omit<LedgerRecord, 'at'> & { readonly at: string };
  return { ...record, at: Date.parse(record.at) };
}

const anyName = fc.option(fc.string({ unit: 'binary' }));
const anyCount = fc.nat();
/** Whole microseconds, in milliseconds. */
const anyDuration = fc.nat().map((microseconds) => microseconds / 1000);

/** Records with any names and numbers. */
export const anyRecord: fc.Arbitrary<LedgerRecord> = fc
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
      audioInputTokens: anyCount,
      audioOutputTokens: anyCount,
      imageInputTokens: anyCount,
      imageOutputTokens: anyCount,
      cachedAudioTokens: anyCount,
      cachedImageTokens: anyCount,
      cacheWrittenHourTokens: anyCount,
      searches: anyCount,
      tier: fc.constantFrom(...serviceTiers),
      tokensKnown: fc.constantFrom(...tokenSources),
      bytesIn: anyCount,
      bytesOut: anyCount,
      mediaSeconds: fc.double({ min: 0, max: 1e6, noNaN: true }),
      durationMs: anyDuration,
      firstByteMs: fc.option(anyDuration),
      retries: anyCount,
      units: anyCount,
      costNanoUsd: fc.maxSafeNat(),
      paidNanoUsd: fc.option(fc.maxSafeNat()),
      videoInputTokens: anyCount,
      geo: anyName,
      characters: anyCount,
    },
    { noNullPrototype: true },
  )
  .map((record) => ({
    ...record,
    ...(record.tokensKnown === 'none' ? noTokens : {}),
    ...(record.keyId === null ? { groups: [] } : {}),
  }));
