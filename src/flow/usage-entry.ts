import type { Usage } from '../conversation/usage.js';
import { type TokenSource, tokenCounts, type UsageEntry } from '../usage/entry.js';
import type { Call } from './call.js';
import { costOfCall } from './consumption.js';

/**
 * Whether a call has a line in the ledger: one of a known key that asked a model for something. What nobody can be
 * charged for would flood it, and so would clients that ask how their tasks stand.
 */
export function isMetered({ key, model, isOfTask, running }: Call): boolean {
  return running.snapshot.usage.ledger && key !== null && model !== null && !isOfTask;
}

/** The line of a call that has ended. Nothing is formatted, and nothing of the call itself is kept. */
export function usageEntryOf(call: Call): UsageEntry {
  const { exchange, target, usage, startedAt, endedAt, answeredAt } = call;
  const { inputTokens, outputTokens, cachedTokens, cacheWrittenTokens, reasoningTokens } = tokenCounts(usage);
  return {
    at: Date.now(),
    requestId: exchange.id,
    keyId: call.key?.id ?? null,
    groups: call.key?.groups ?? [],
    protocol: call.route?.protocol ?? null,
    model: call.model?.name ?? null,
    target: target === null ? null : `${target.upstream.name}/${target.model}`,
    status: exchange.status,
    outcome: call.outcome,
    inputTokens,
    outputTokens,
    cachedTokens,
    cacheWrittenTokens,
    reasoningTokens,
    tokensKnown: tokenSource(usage),
    bytesIn: exchange.bytesIn,
    bytesOut: exchange.bytesOut,
    mediaSeconds: call.isServed ? call.mediaSeconds : 0,
    durationMs: rounded(endedAt - startedAt),
    firstByteMs: answeredAt > 0 ? rounded(answeredAt - startedAt) : null,
    retries: call.retries,
    costNanoUsd: costOfCall(call),
  };
}

function tokenSource(usage: Usage | null): TokenSource {
  if (usage === null) return 'none';
  if (usage.partial) return 'partial';
  return usage.estimated ? 'estimated' : 'exact';
}

/** Whole microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
