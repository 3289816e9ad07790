import { type CallRecord, unknownCost } from '../../src/metrics/call-record.js';
import type { TokenCounts } from '../../src/metrics/recorder.js';

/** The part of a call record that a test sets, with only the token counts that matter. */
export type GivenRecord = Partial<Omit<CallRecord, 'usage'>> & { readonly usage?: TokenCounts | null };

/** Makes the record of a successful call, with some values replaced. */
export function callRecord({ usage = null, ...given }: GivenRecord = {}): CallRecord {
  return {
    id: 'req_1',
    number: -1,
    method: 'POST',
    path: '/v1/chat/completions',
    client: null,
    keyId: 'team-a',
    groups: [],
    protocol: 'chat',
    model: 'sim-text',
    target: 'up/m-1',
    status: 200,
    outcome: 'complete',
    error: null,
    cause: null,
    usage: usage === null ? null : { cacheWritten: 0, ...usage },
    givenUp: null,
    otherAttempts: null,
    bytesIn: 100,
    bytesOut: 1000,
    mediaSeconds: 0,
    characters: 0,
    leftOut: [],
    lostInAnswer: [],
    retries: 0,
    units: 1,
    costNanoUsd: 0,
    paidNanoUsd: unknownCost,
    isMetered: true,
    endsLater: false,
    endedAt: 1000,
    durationMs: 250,
    firstByteMs: 125,
    ownMs: 0.125,
    ...given,
  };
}
