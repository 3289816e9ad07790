import type { UsageEntry } from '../../src/usage/entry.js';

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
