import { type Test, test } from 'tap';
import { resolvePrice } from '../../../src/config/resolve.js';
import { estimatedUsage, mostImageTokens } from '../../../src/conversation/estimate-usage.js';
import type { ResolvedCall } from '../../../src/flow/call.js';
import { reservedCost } from '../../../src/flow/limits/reserved-cost.js';
import { hashKey } from '../../../src/keys/secret.js';
import { textEndpoints } from '../../../src/protocols/text.js';
import { costOf } from '../../support/cost.js';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { png } from '../../support/media/images.js';
import { postJson } from '../../support/post-json.js';
import { completion, jsonAnswer, type RawRequest, startRawUpstream } from '../../support/upstream.js';

/** A token costs a thousandth of a dollar. */
const price = resolvePrice({
  input: 1000,
  output: 1000,
  tiers: { priority: 3, flex: 0.5, fast: 7, ultrafast: 9, scale: 2 },
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
  t.equal(reserved('{"service_tier":"ultrafast"}'), 9);
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

test('output is reserved as the dearest kind that the body allows, and the searches that its tools may make', async (t) => {
  const of = resolvePrice({ output: 1000, audioOutput: 8000, imageOutput: 12_000, perSearch: 1 });
  const cost = (body: object, price = of, more: object = {}) => {
    const written = { body: Buffer.from(JSON.stringify(body)), upload: null };
    const asked = { route: { endpoint: textEndpoints['contents' in body ? 'generateContent' : 'chat'] } };
    const sent = { ...written, ...asked, model: { targets: [] }, units: 1, made: null, key: null, ...more };
    const expected = { usage: estimatedUsage(0, 1), seconds: 0, characters: 0 };
    return reservedCost(sent as unknown as ResolvedCall, price, expected) / million;
  };
  t.equal(cost({ modalities: ['text', 'audio'], audio: { voice: 'alloy' } }), 8);
  t.equal(cost({ modalities: ['text'] }), 1);
  t.equal(cost({ modalities: ['image', 'text'] }), 12);
  t.equal(cost({ contents: [] }), 12, 'images come unasked');
  t.equal(cost({ messages: [] }), 1, 'not in chat');
  const tools = [{ type: 'function', name: 'f' }, { type: 'image_generation' }];
  t.equal(cost({ input: 'x', tools }), 12, 'or a tool asks for them');
  t.equal(cost({ input: 'x', tools: tools.slice(0, 1) }), 1);
  const translated = { model: { targets: [{ translatesTo: 'generateContent' }] } };
  t.equal(cost({ messages: [] }, of, translated), 12, 'unless it is translated');
  t.equal(cost({}, resolvePrice({ output: 1000, audioOutput: 8000 })), 1, 'and sound does not');
  for (const generationConfig of [{ responseModalities: ['AUDIO'] }, { response_modalities: ['AUDIO'] }])
    t.equal(cost({ contents: [], generationConfig }), 8);
  t.equal(cost({ contents: [], generation_config: { responseModalities: ['TEXT', 'Image'] } }), 12);
  t.equal(cost({ contents: [], generationConfig: { responseModalities: ['TEXT'] } }), 1);
  const plain = resolvePrice({ output: 1000, perSearch: 1 });
  const search = (max_uses: unknown) => ({ type: 'web_search_20250305', name: 'web_search', max_uses });
  const fetching = { type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 9 };
  t.equal(cost({ tools: [{ name: 'f', input_schema: {} }, search(5), fetching, search(2)] }, plain), 7001);
  t.equal(cost({ tools: [search(5)] }, plain, { units: 0 }), 1, 'a count of tokens makes none');
  for (const tools of [[], {}, [search(null)], [search('x')], ['x', search(1)]])
    t.equal(cost({ tools }, plain), 1, JSON.stringify(tools));
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
    const answer = await postJson(`${running.url}/v1/chat/completions`, {
      model: 'm',
      max_tokens: 4,
      service_tier: 'priority',
      messages,
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

/** Sends as many calls at once with a budget, answers those that reach the upstream, and returns the cost of all. */
async function costOfMany(
  t: Test,
  { model, usd, times, path, body, answer }: ManyCalls,
): Promise<{ readonly nanos: number; readonly served: number }> {
  const held: RawRequest[] = [];
  const upstream = await startRawUpstream(t, (request) => void held.push(request));
  const running = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      upstreams: { u0: { kind: model.kind ?? 'chat', baseUrl: upstream.url, apiKeys: ['k'] } },
      models: { m: { protocols: model.protocols, targets: [{ upstream: 'u0' }], price: model.price } },
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'], budget: { usd, per: 'month' } }],
    },
  });
  let refused = 0;
  const statuses = Array.from({ length: times }, async () => {
    const sent = body();
    const isForm = sent instanceof FormData;
    const answered = await fetch(running.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${testKey}`,
        'anthropic-version': '2023-06-01',
        ...(isForm ? {} : { 'content-type': 'application/json' }),
      },
      body: isForm ? sent : JSON.stringify(sent),
    });
    await answered.text();
    if (answered.status === 429) refused++;
    return answered.status;
  });
  await eventually(() => refused + held.length >= times, { everyMs: 10 });
  for (const { socket } of held) socket.write(jsonAnswer(200, JSON.stringify(answer)));
  const served = (await Promise.all(statuses)).filter((status) => status === 200).length;
  t.equal(served, held.length);
  return {
    nanos: await eventually(() => costOf(running), { fits: (nanos) => nanos > 0, everyMs: 10 }),
    served,
  };
}

interface ManyCalls {
  readonly model: { readonly kind?: string; readonly protocols: readonly string[]; readonly price: object };
  readonly usd: number;
  readonly times: number;
  readonly path: string;
  readonly body: () => object;
  readonly answer: object;
}

test('images that are charged by their tokens reserve those of their number, quality and size', async (t) => {
  const model = { protocols: ['images'], price: { input: 5, imageInput: 8, output: 40, imageOutput: 40 } };
  const usage = { input_tokens: 20, output_tokens: 62_080, total_tokens: 62_100 };
  const answer = { created: 1, data: Array(10).fill({ b64_json: 'aaaa' }), usage };
  const asked = { model: 'm', prompt: 'x', n: 10, quality: 'high', size: '1536x1024' };
  const path = '/v1/images/generations';
  const many = await costOfMany(t, { model, usd: 6, times: 8, path, body: () => asked, answer });
  t.ok(many.served > 0 && many.nanos <= 6e9, `${many.nanos} are spent by ${many.served}`);
  const form = () => {
    const parts = new FormData();
    for (const [name, value] of Object.entries(asked)) parts.append(name, `${value}`);
    parts.append('image', new Blob([png]), 'a.png');
    return parts;
  };
  const edits = await costOfMany(t, {
    model,
    usd: 6,
    times: 8,
    path: '/v1/images/edits',
    body: form,
    answer,
  });
  t.ok(edits.served > 0 && edits.nanos <= 6e9, `${edits.nanos} are spent by ${edits.served}`);
});

test('a rerank reserves a search unit for each hundred documents, and costs what its answer names', async (t) => {
  const model = { protocols: ['rerank'], price: { perCall: 0.002 } };
  const results = [{ index: 0, relevance_score: 0.9 }];
  for (const document of ['d', { text: 'd', title: ['x', '}'] }]) {
    const body = () => ({ model: 'm', query: 'q', documents: Array(901).fill(document) });
    const answer = { id: 'x', results, meta: { billed_units: { search_units: 10 } } };
    const calls = { model, usd: 0.05, times: 6, path: '/v1/rerank', body, answer };
    t.match(await costOfMany(t, calls), { nanos: 40_000_000, served: 2 });
    const unnamed = await costOfMany(t, { ...calls, answer: { id: 'x', results } });
    t.match(unnamed, { nanos: 4_000_000, served: 2 }, 'once, if the answer names none');
  }
});

test('a rerank that is charged by its tokens reserves its query once with each document', async (t) => {
  const model = { protocols: ['rerank'], price: { input: 10 } };
  const body = () => ({ model: 'm', query: 'word '.repeat(80), documents: Array(100).fill('d') });
  const answer = {
    results: [{ index: 0, relevance_score: 0.9 }],
    usage: { prompt_tokens: 10_000, total_tokens: 10_000 },
  };
  const calls = { model, usd: 0.25, times: 6, path: '/v1/rerank', body, answer };
  t.match(await costOfMany(t, calls), { nanos: 200_000_000, served: 2 });
});

test('the tokens of an image are expected by its quality and size, and the dearest of what is unknown', async (t) => {
  const tokens = (size: string | null, quality: string | null) =>
    mostImageTokens({ size, quality, resolution: null });
  // As the vendor lists them.
  const listed = { low: [272, 408, 400], medium: [1056, 1584, 1568], high: [4160, 6240, 6208] };
  for (const [quality, least] of Object.entries(listed)) {
    for (const [index, size] of ['1024x1024', '1024x1536', '1536x1024'].entries())
      t.ok(tokens(size, quality) >= (least[index] ?? 0), `${size} ${quality}`);
  }
  t.ok(tokens('1024x1024', 'low') < 1000);
  t.equal(tokens('1024x1024', null), tokens('1024x1024', 'high'));
  t.equal(tokens('auto', 'auto'), tokens('1024x1024', 'high'));
  t.equal(tokens('1x1', 'high'), tokens('1024x1024', 'high'));
  t.ok(tokens('3840x2160', 'high') > 5 * tokens('1024x1024', 'high'));
  t.ok(tokens('1e300x1e300', 'high') < 1_000_000);
});

test('a call whose text is spoken reserves the price of its characters', async (t) => {
  const call = { body: Buffer.from('{}'), upload: null, units: 1, made: null, key: null };
  const expected = { usage: estimatedUsage(0, 0), seconds: 0, characters: 12 };
  t.equal(
    reservedCost(call as unknown as ResolvedCall, resolvePrice({ characters: 15, perCall: 1 }), expected),
    1_000_000_000 + 12 * 15_000,
  );
});
