import type { Usage } from '../conversation/usage.js';
import { targetName } from '../metrics/target-name.js';
import type { TokenSource, UsageEntry } from '../usage/entry.js';
import type { Call } from './call.js';
import { costOfCall } from './consumption.js';

/**
 * Whether a call has a line in the ledger: one of a known key that asked a model for something. What nobody can be
 * charged for would flood it, and so would clients that ask how their tasks stand.
 */
export function isMetered({ key, model, isOfTask, running }: Call): boolean {
  return running.snapshot.usage.ledger && key !== null && model !== null && !isOfTask;
}

/** What the ledger keeps of a call that has ended. Nothing is formatted, and nothing of the call itself is kept. */
export function usageEntryOf(call: Call): UsageEntry {
  const { exchange, key, target, usage, startedAt, answeredAt } = call;
  return {
    at: Date.now(),
    requestId: exchange.id,
    keyId: key === null ? null : key.id,
    groups: key === null ? noGroups : key.groups,
    protocol: call.route === null ? null : call.route.protocol,
    model: call.model === null ? null : call.model.name,
    target: target === null ? null : targetName(target),
    status: exchange.status,
    outcome: call.outcome,
    inputTokens: usage === null ? 0 : usage.input,
    outputTokens: usage === null ? 0 : usage.output,
    cachedTokens: usage === null ? 0 : usage.cached,
    cacheWrittenTokens: usage === null ? 0 : usage.cacheWritten,
    reasoningTokens: usage === null ? 0 : usage.reasoning,
    tokensKnown: tokenSource(usage),
    bytesIn: exchange.bytesIn,
    bytesOut: exchange.bytesOut,
    mediaSeconds: call.isServed ? call.mediaSeconds : 0,
    durationMs: call.endedAt - startedAt,
    firstByteMs: answeredAt > 0 ? answeredAt - startedAt : null,
    retries: call.retries,
    costNanoUsd: costOfCall(call),
  };
}

const noGroups: readonly string[] = [];

function tokenSource(usage: Usage | null): TokenSource {
  if (usage === null) return 'none';
  if (usage.partial) return 'partial';
  return usage.estimated ? 'estimated' : 'exact';
}
