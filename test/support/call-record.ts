import { type CallRecord, unknownCost } from '../../src/metrics/call-record.js';
import type { TokenCounts } from '../../src/metrics/recorder.js';

/** What a test says of a call; of its tokens, the part that it is about. */
export type GivenRecord = Partial<Omit<CallRecord, 'usage'>> & { readonly usage?: TokenCounts | null };

/** The record of a call that went well, but for what is given. */
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
