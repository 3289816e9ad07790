import { type CallFacts, noFacts } from '../metrics/recorder.js';
import { firstByteMs, ownMs } from '../usage/ended-call.js';
import type { Call } from './call.js';
import { costOfCall } from './consumption.js';

/** Filled anew for every call: what it is given to keeps nothing of it. */
const facts = noFacts();

/** What is counted of a call that has ended; valid until the next one. */
export function factsOf(call: Call): CallFacts {
  const { exchange, startedAt, endedAt } = call;
  facts.protocol = call.route?.protocol ?? null;
  facts.model = call.model?.name ?? null;
  facts.key = call.key?.id ?? null;
  facts.status = exchange.status;
  facts.outcome = call.outcome;
  facts.durationMs = endedAt - startedAt;
  facts.firstByteMs = firstByteMs(call);
  facts.ownMs = ownMs(call);
  facts.requestBytes = exchange.bytesIn;
  facts.responseBytes = exchange.bytesOut;
  facts.usage = call.usage;
  facts.costNanos = costOfCall(call);
  return facts;
}
