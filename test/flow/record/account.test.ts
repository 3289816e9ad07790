import { test } from 'tap';
import { resolvePrice } from '../../../src/config/resolve.js';
import type { Price } from '../../../src/config/types.js';
import { GatewayError } from '../../../src/errors.js';
import type { Call } from '../../../src/flow/call.js';
import { recordOf } from '../../../src/flow/record/account.js';
import { none, unknownCost } from '../../../src/metrics/call-record.js';
import { target } from '../../metrics/samples.js';

const head = { peer: null, forwardedFor: '' };
const exchange = {
  id: 'req_7',
  number: 7,
  method: 'POST',
  path: '/v1',
  status: 200,
  bytesIn: 1,
  bytesOut: 2,
  head,
};
const usage = { input: 7, output: 5, cached: 0, cacheWritten: 0, reasoning: 0 };

/** A call that has ended well, as far as its record goes, but for what is given. */
function endedCall(given: object = {}): Call {
  return {
    exchange: { ...exchange },
    running: { proxies: null, snapshot: { usage: { ledger: true } } },
    route: { protocol: 'chat' },
    model: { name: 'm', price: null },
    key: { id: 'team', groups: ['g'], priceFactor: 1 },
    target: { ...target('up', 'm-1'), cost: null },
    usage,
    givenUp: { input: 4, output: 0 },
    otherAttempts: null,
    error: null,
    outcome: 'complete',
    isServed: true,
    isOfTask: false,
    begun: null,
    mediaSeconds: 3,
    characters: 4,
    units: 1,
    made: null,
    otherModels: null,
    costNanos: -1,
    leftOut: [],
    lostInAnswer: [],
    retries: 0,
    startedAt: 1000,
    sentAt: 1000.25,
    answeredAt: 1100,
    endedAt: 1250,
    ...given,
  } as unknown as Call;
}

test('a record has the names, numbers and times of its call, and keeps them whatever becomes of the call', async (t) => {
  const call = endedCall();
  const record = recordOf(call);
  call.exchange.bytesOut = 99;
  call.outcome = 'client_gone';
  call.usage = null;
  t.strictSame(record, {
    id: 'req_7',
    number: 7,
    method: 'POST',
    path: '/v1',
    client: null,
    keyId: 'team',
    groups: ['g'],
    protocol: 'chat',
    model: 'm',
    target: 'up/m-1',
    status: 200,
    outcome: 'complete',
    error: null,
    cause: null,
    usage,
    givenUp: { input: 4, output: 0 },
    otherAttempts: null,
    bytesIn: 1,
    bytesOut: 2,
    mediaSeconds: 3,
    characters: 0,
    leftOut: [],
    lostInAnswer: [],
    retries: 0,
    units: 1,
    costNanoUsd: 0,
    paidNanoUsd: unknownCost,
    isMetered: true,
    endsLater: false,
    endedAt: 1250,
    durationMs: 250,
    firstByteMs: 100,
    ownMs: 0.25,
  });
});

test('a call that came to nothing has no names but its own, no times but its end, and no line in the ledger', async (t) => {
  const nothing = {
    route: null,
    model: null,
    key: null,
    target: null,
    usage: null,
    sentAt: 0,
    answeredAt: 0,
  };
  const error = new GatewayError('invalid_api_key', 'The API key is not valid.');
  t.match(recordOf(endedCall({ ...nothing, error, outcome: 'refused', isServed: false })), {
    keyId: null,
    groups: [],
    protocol: null,
    model: null,
    target: null,
    error: 'invalid_api_key',
    cause: null,
    mediaSeconds: 0,
    characters: 0,
    isMetered: false,
    firstByteMs: none,
    ownMs: none,
  });
});

test('of a call that was tried again nobody knows what it cost here', async (t) => {
  t.match(recordOf(endedCall({ retries: 1 })), { retries: 1, ownMs: none, firstByteMs: 100 });
});

test('what a call has used of other models has their prices, and costs the operator what their targets do', async (t) => {
  const transcriber = { name: 'heard', price: resolvePrice({ perSecond: 1 }) };
  const other = { usage: null, seconds: 2, units: 1 };
  const priced = (cost: Price | null, ofOther: Price | null) =>
    recordOf(
      endedCall({
        model: { name: 'm', price: resolvePrice({ output: 1000 }) },
        key: { id: 'team', groups: ['g'], priceFactor: 3 },
        target: { ...target('up', 'm-1'), cost },
        otherModels: new Map([
          [transcriber, { ...other, target: { ...target('up', 'h-1'), cost: ofOther } }],
        ]),
      }),
    );
  const nanos = 1_000_000_000;
  const costNanoUsd = 3 * (5 * 1_000_000 + 2 * nanos);
  const cost = resolvePrice({ output: 100, perSecond: 0.25 });
  const ofCall = 5 * 100_000 + 3 * 0.25 * nanos;
  t.match(priced(cost, resolvePrice({ perSecond: 0.5 })), { costNanoUsd, paidNanoUsd: ofCall + nanos });
  t.match(priced(cost, null), { costNanoUsd, paidNanoUsd: ofCall + 0.5 * nanos }, 'as the call if unknown');
  t.match(priced(null, cost), { costNanoUsd, paidNanoUsd: unknownCost });
  t.equal(priced(cost, null).mediaSeconds, 3 + 2);
});
