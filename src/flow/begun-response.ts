import { estimatedUsage } from '../conversation/estimate-usage.js';
import type { CallRecord } from '../metrics/call-record.js';
import { idOfBeginning, idOfEvents } from '../protocols/responses/made-id.js';
import type { AnswerWatch } from '../stream/observe.js';
import type { BackgroundCall } from '../usage/background-calls.js';
import type { Call } from './call.js';
import { type BegunResponse, costsOfTokens, factorOf } from './consumption.js';
import { expectedUsage } from './expected-usage.js';
import { keyMark } from './key-mark.js';
import type { Services } from './services.js';

/**
 * Notes that a call which is about to be sent may end after its answer.
 * @param apiKey of the upstream
 * @param watch what else is shown the beginning of its answer, or null
 * @returns what is shown it
 */
export function beginInBackground(call: Call, apiKey: string | null, watch: AnswerWatch | null): AnswerWatch {
  const begun: BegunResponse = { expected: expectedUsage(call), credential: keyMark(apiKey), id: null };
  call.begun = begun;
  return (piece, isStream) => {
    begun.id ??= isStream ? idOfEvents(piece) : idOfBeginning(piece);
    const isSeen = watch === null || watch(piece, isStream);
    return isSeen && begun.id !== null;
  };
}

/** Leaves a call to be settled once its end is known. @param record of what is known by now */
export function settleLater(services: Services, call: Call, record: CallRecord): void {
  const { begun, target, model, limited } = call;
  if (begun?.id == null || target === null) return;
  const { expected } = begun;
  const streamed = call.usage?.output ?? 0;
  const usage = estimatedUsage(expected.input, Math.max(expected.output, streamed));
  const factor = factorOf(call);
  const background: BackgroundCall = {
    response: begun.id,
    upstream: target.upstream.name,
    upstreamModel: target.model,
    credential: begun.credential,
    at: Date.now(),
    reserved: limited?.reserved() ?? [],
    factor,
    streamed,
    record: {
      ...record,
      endsLater: false,
      outcome: 'incomplete',
      usage,
      units: 1,
      ...costsOfTokens(model?.price ?? null, target.cost, usage, factor),
    },
  };
  const work = services.background.add(background).then((isNoted) => {
    if (!isNoted) services.meter(background.record);
  });
  services.unattended.add(work);
}
