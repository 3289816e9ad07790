import type { Usage } from '../conversation/usage.js';
import { targetName } from '../metrics/target-name.js';
import type { UnixTime } from '../metrics/unix-time.js';
import { requestSeries } from '../request-id.js';
import type { TokenSource, UsageNote } from '../usage/entry.js';
import type { Call } from './call.js';
import { ownMs } from './call-facts.js';
import { costOfCall } from './consumption.js';

/**
 * Whether a call has a line in the ledger: one of a known key that asked a model for something. What nobody can be
 * charged for would flood it, and so would clients that ask how their tasks stand.
 */
export function isMetered({ key, model, isOfTask, running }: Call): boolean {
  return running.snapshot.usage.ledger && key !== null && model !== null && !isOfTask;
}

const noGroups: readonly string[] = [];

/**
 * Filled anew for every call: what it is given to keeps nothing of it. What it points at is as old as it is itself, but
 * for the ids of a WebSocket's turns: to point at what is new would cost more than all else here.
 */
const note: { -readonly [Name in keyof UsageNote]: UsageNote[Name] } = {
  at: 0,
  requestSeries: '',
  requestNumber: -1,
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
  firstByteMs: -1,
  ownMs: -1,
  retries: 0,
  costNanoUsd: 0,
};

/** What the ledger keeps of a call that has ended; valid until the next one. Nothing is formatted. */
export function usageNoteOf(call: Call, unixTime: UnixTime): UsageNote {
  const { exchange, key, target, usage, startedAt, answeredAt } = call;
  note.at = unixTime.at(call.endedAt);
  note.requestSeries = exchange.number < 0 ? exchange.id : requestSeries;
  note.requestNumber = exchange.number;
  note.keyId = key === null ? null : key.id;
  note.groups = key === null ? noGroups : key.groups;
  note.protocol = call.route === null ? null : call.route.protocol;
  note.model = call.model === null ? null : call.model.name;
  note.target = target === null ? null : targetName(target);
  note.status = exchange.status;
  note.outcome = call.outcome;
  note.inputTokens = usage === null ? 0 : usage.input;
  note.outputTokens = usage === null ? 0 : usage.output;
  note.cachedTokens = usage === null ? 0 : usage.cached;
  note.cacheWrittenTokens = usage === null ? 0 : usage.cacheWritten;
  note.reasoningTokens = usage === null ? 0 : usage.reasoning;
  note.tokensKnown = tokenSource(usage);
  note.bytesIn = exchange.bytesIn;
  note.bytesOut = exchange.bytesOut;
  note.mediaSeconds = call.isServed ? call.mediaSeconds : 0;
  note.durationMs = call.endedAt - startedAt;
  note.firstByteMs = answeredAt > 0 ? answeredAt - startedAt : -1;
  note.ownMs = ownMs(call);
  note.retries = call.retries;
  note.costNanoUsd = costOfCall(call);
  return note;
}

function tokenSource(usage: Usage | null): TokenSource {
  if (usage === null) return 'none';
  if (usage.partial) return 'partial';
  return usage.estimated ? 'estimated' : 'exact';
}
