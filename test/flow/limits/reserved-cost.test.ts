import { test } from 'tap';
import { resolvePrice } from '../../../src/config/resolve.js';
import { estimatedUsage } from '../../../src/conversation/estimate-usage.js';
import type { ResolvedCall } from '../../../src/flow/call.js';
import { reservedCost } from '../../../src/flow/limits/reserved-cost.js';
import { hashKey } from '../../../src/keys/secret.js';
import { costOf } from '../../support/cost.js';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { completion, jsonAnswer, type RawRequest, startRawUpstream } from '../../support/upstream.js';

/** A token costs a thousandth of a dollar. */
const price = resolvePrice({
  input: 1000,
  output: 1000,
  tiers: { priority: 3, flex: 0.5, fast: 7, scale: 2 },
  geos: { us: 1.5, eu: 0.5 },
});
const million = 1_000_000;

/** What a call of one token reserves, in thousandths of a dollar. */
function reserved(body: string, of = price): number {
  const call = { body: Buffer.from(body), upload: null, units: 1, made: null, key: null };
  const expected = { usage: estimatedUsage(1, 0), seconds: 0, characters: 0 };
  return reservedCost(call as unknown as ResolvedCall, of, expected) / million;
}

test('a call reserves the price of the tier and the place that it names, if they are dearer', async (t) => {
  t.equal(reserved('{"model":"m"}'), 1);
  t.equal(reserved('{"service_tier":"priority"}'), 3);
  t.equal(reserved(' { "serviceTier" : "PRIORITY" }'), 3);
  t.equal(reserved('{"service_tier":"flex"}'), 1, 'which the upstream need not grant');
  t.equal(reserved('{"speed":"fast"}'), 7);
  t.equal(reserved('{"service_tier":"auto"}'), 3, 'the dearest that an upstream may choose');
  t.equal(reserved('{"service_tier":"a new one"}'), 3);
  for (const word of ['default', 'standard', 'standard_only', 'on_demand', 'unspecified'])
    t.equal(reserved(`{"service_tier":"${word}"}`), 1, word);
  for (const word of ['SERVICE_TIER_STANDARD', 'SERVICE_TIER_UNSPECIFIED', 'standard', 'unspecified'])
    t.equal(reserved(`{"serviceTier":"${word}"}`), 1, word);
  for (const word of ['normal', 'standard']) t.equal(reserved(`{"speed":"${word}"}`), 1, word);
  t.equal(reserved('{"inference_geo":"us"}'), 1.5);
  t.equal(reserved('{"inference_geo":"eu"}'), 1);
  t.equal(reserved('{"inference_geo":"elsewhere"}'), 1);
  t.equal(reserved('{"inference_geo":"us","service_tier":"priority"}'), 4.5);
  t.equal(reserved('{"service_tier":"flex","service_tier":"priority"}'), 3, 'of two, any may count');
  for (const body of ['{"service_tier":1}', '{"service_tier":null}', '{"a":{"service_tier":"priority"}}'])
    t.equal(reserved(body), 1, body);
  const plain = resolvePrice({ input: 1000, output: 1000 });
  t.equal(reserved('{"service_tier":"priority"}', plain), 1, 'without a price of its own');
});

test('a budget is not overrun by calls at once of a dear tier', async (t) => {
  const held: RawRequest[] = [];
  const upstream = await startRawUpstream(t, (request) => void held.push(request));
  const usd = 0.25;
  const running = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        m: {
          protocols: ['chat'],
          targets: [{ upstream: 'u0' }],
          price: { input: 1000, output: 2000, tiers: { priority: 10 } },
        },
      },
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'], budget: { usd, per: 'month' } }],
    },
  });
  let refused = 0;
  const messages = [{ role: 'user', content: 'hi' }];
  const calls = Array.from({ length: 10 }, async () => {
    const answer = await fetch(`${running.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', max_tokens: 4, service_tier: 'priority', messages }),
    });
    await answer.text();
    if (answer.status === 429) refused++;
    return answer.status;
  });
  await eventually(() => refused + held.length >= calls.length, { everyMs: 10 });
  const answer = { ...(JSON.parse(completion) as object), service_tier: 'priority' };
  for (const { socket } of held) socket.write(jsonAnswer(200, JSON.stringify(answer)));
  t.ok((await Promise.all(calls)).includes(200), 'it serves what it has');
  const cost = await eventually(() => costOf(running), { fits: (nanos) => nanos > 0, everyMs: 10 });
  t.ok(cost <= usd * 1e9, `${cost} are spent`);
});

test('a call whose text is spoken reserves the price of its characters', async (t) => {
  const call = { body: Buffer.from('{}'), upload: null, units: 1, made: null, key: null };
  const expected = { usage: estimatedUsage(0, 0), seconds: 0, characters: 12 };
  t.equal(
    reservedCost(call as unknown as ResolvedCall, resolvePrice({ characters: 15, perCall: 1 }), expected),
    1_000_000_000 + 12 * 15_000,
  );
});
