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

const noGroups: readonly string[] = [];

/** Filled anew for every call: what it is given to keeps nothing of it. */
const entry: { -readonly [Name in keyof UsageEntry]: UsageEntry[Name] } = {
  at: 0,
  requestId: '',
  keyId: null,
  groups: noGroups,
  protocol: null,
  model: null,
  target: null,
  status: 0,
  outcome: 'complete',
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  cacheWrittenTokens: 0,
  reasoningTokens: 0,
  tokensKnown: 'none',
  bytesIn: 0,
  bytesOut: 0,
  mediaSeconds: 0,
  durationMs: 0,
  firstByteMs: null,
  retries: 0,
  costNanoUsd: 0,
};

/** What the ledger keeps of a call that has ended; valid until the next one. Nothing is formatted. */
export function usageEntryOf(call: Call): UsageEntry {
  const { exchange, key, target, usage, startedAt, answeredAt } = call;
  entry.at = Date.now();
  entry.requestId = exchange.id;
  entry.keyId = key === null ? null : key.id;
  entry.groups = key === null ? noGroups : key.groups;
  entry.protocol = call.route === null ? null : call.route.protocol;
  entry.model = call.model === null ? null : call.model.name;
  entry.target = target === null ? null : targetName(target);
  entry.status = exchange.status;
  entry.outcome = call.outcome;
  entry.inputTokens = usage === null ? 0 : usage.input;
  entry.outputTokens = usage === null ? 0 : usage.output;
  entry.cachedTokens = usage === null ? 0 : usage.cached;
  entry.cacheWrittenTokens = usage === null ? 0 : usage.cacheWritten;
  entry.reasoningTokens = usage === null ? 0 : usage.reasoning;
  entry.tokensKnown = tokenSource(usage);
  entry.bytesIn = exchange.bytesIn;
  entry.bytesOut = exchange.bytesOut;
  entry.mediaSeconds = call.isServed ? call.mediaSeconds : 0;
  entry.durationMs = call.endedAt - startedAt;
  entry.firstByteMs = answeredAt > 0 ? answeredAt - startedAt : null;
  entry.retries = call.retries;
  entry.costNanoUsd = costOfCall(call);
  return entry;
}

function tokenSource(usage: Usage | null): TokenSource {
  if (usage === null) return 'none';
  if (usage.partial) return 'partial';
  return usage.estimated ? 'estimated' : 'exact';
}
