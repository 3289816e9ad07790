import { test } from 'tap';
import { importPrices, listedPrice, writePrices } from '../../src/config/import-prices.js';
import { ConfigError } from '../../src/config/problem.js';

/** The price and what could not be said of it, of an entry with these members. */
function read(entry: object, more: object = {}) {
  return listedPrice({ m: entry, ...more }, 'm');
}

test('prices of one token become those of a million, exactly', async (t) => {
  for (const [usd, expected] of [
    [1.25e-6, 1.25],
    [0.00001, 10],
    [4e-7, 0.4],
    [7.5e-8, 0.075],
    [2.1875e-6, 2.1875],
    [0, 0],
    [1, 1e6],
  ] as const)
    t.same(read({ input_cost_per_token: usd }), { price: { input: expected }, unused: [] }, `${usd}`);
});

test('each member of the list has its place', async (t) => {
  const found = read({
    litellm_provider: 'x',
    mode: 'chat',
    max_input_tokens: 1000,
    supports_vision: true,
    input_cost_per_token: 1e-6,
    output_cost_per_token: 2e-6,
    cache_read_input_token_cost: 3e-6,
    cache_creation_input_token_cost: 4e-6,
    cache_creation_input_token_cost_above_1hr: 5e-6,
    input_cost_per_audio_token: 6e-6,
    output_cost_per_audio_token: 7e-6,
    cache_read_input_audio_token_cost: 8e-6,
    input_cost_per_image_token: 9e-6,
    input_cost_per_video_token: 21e-6,
    output_cost_per_image_token: 10e-6,
    cache_read_input_image_token_cost: 11e-6,
    output_cost_per_reasoning_token: 12e-6,
    search_context_cost_per_query: {
      search_context_size_low: 0.01,
      search_context_size_medium: 0.01,
      search_context_size_high: 0.01,
    },
    input_cost_per_token_above_200k_tokens: 13e-6,
    output_cost_per_token_above_200k_tokens: 14e-6,
    cache_creation_input_token_cost_above_1hr_above_200k_tokens: 15e-6,
    input_cost_per_token_above_128k_tokens: 16e-6,
    input_cost_per_token_flex: 17e-6,
    input_cost_per_token_priority: 18e-6,
    input_cost_per_token_above_200k_tokens_priority: 19e-6,
    output_cost_per_token_batches: 20e-6,
    output_cost_per_token_ultrafast: 22e-6,
    provider_specific_entry: { us: 1.1, eu: 1.2 },
    output_cost_per_image: 0.04,
    code_interpreter_cost_per_session: 0.03,
    vector_store_cost_per_gb_per_day: 0,
  });
  const steps = [
    { aboveInput: 128_000, input: 16 },
    { aboveInput: 200_000, input: 13, output: 14, cacheWrittenHour: 15 },
  ];
  t.strictSame(found, {
    price: {
      input: 1,
      output: 2,
      cached: 3,
      cacheWritten: 4,
      cacheWrittenHour: 5,
      audioInput: 6,
      audioOutput: 7,
      cachedAudio: 8,
      imageInput: 9,
      videoInput: 21,
      imageOutput: 10,
      cachedImage: 11,
      reasoning: 12,
      perSearch: 0.01,
      steps,
      tiers: {
        flex: { input: 17, steps },
        priority: { input: 18, steps: [{ aboveInput: 200_000, input: 19 }] },
        batch: { output: 20, steps },
        ultrafast: { output: 22, steps },
      },
      geos: { us: 1.1 },
    },
    unused: ['provider_specific_entry.eu', 'code_interpreter_cost_per_session', 'output_cost_per_image'],
  });
});

test('the factor for fast answers is one on tokens, not on searches', async (t) => {
  const entry = {
    input_cost_per_token: 3e-7,
    output_cost_per_token: 2e-6,
    input_cost_per_token_above_200k_tokens: 7e-7,
    provider_specific_entry: { fast: 6 },
  };
  t.strictSame(read(entry)?.price.tiers, { fast: 6 });
  const searches = { search_context_cost_per_query: { search_context_size_medium: 0.01 } };
  t.strictSame(read({ ...entry, ...searches })?.price.tiers, {
    fast: { input: 1.8, output: 12, steps: [{ aboveInput: 200_000, input: 4.2 }] },
  });
});

test('lengths may be a list, and searches differ by how much is read', async (t) => {
  t.strictSame(
    read({
      tiered_pricing: [
        { range: [0, 32_000], input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 },
        { range: [32_000, 128_000], input_cost_per_token: 3e-6, odd_cost: 1 },
      ],
      search_context_cost_per_query: { search_context_size_medium: 0.02, search_context_size_high: 0.03 },
    }),
    {
      price: { input: 1, output: 2, perSearch: 0.02, steps: [{ aboveInput: 32_000, input: 3 }] },
      unused: ['tiered_pricing.odd_cost', 'search_context_cost_per_query (other sizes than medium)'],
    },
  );
});

test('images of a quality come before those of any, of which the first that fits counts', async (t) => {
  const sized = {
    '1024-x-1024/m': { mode: 'image_generation', output_cost_per_image: 0.04 },
    '512-x-512/m': { mode: 'image_generation', output_cost_per_image: 0.02 },
    'hd/1024-x-1024/m': { mode: 'image_generation', output_cost_per_image: 0.08 },
  };
  t.strictSame(read({ mode: 'image_generation' }, sized)?.price.images, [
    { size: '1024x1024', usd: 0.08, quality: 'hd' },
    { size: '1024x1024', usd: 0.04 },
    { size: '512x512', usd: 0.02 },
  ]);
});

test('images, seconds and documents', async (t) => {
  t.strictSame(read({ mode: 'image_generation', output_cost_per_image: 0.04 })?.price, { perCall: 0.04 });
  t.strictSame(read({ mode: 'image_generation', input_cost_per_image: 0.05 })?.price, { perCall: 0.05 });
  const embedding = { mode: 'embedding', input_cost_per_token: 8e-7, input_cost_per_image: 6e-5 };
  t.strictSame(
    read(embedding),
    { price: { input: 0.8 }, unused: ['input_cost_per_image'] },
    'images that are read',
  );
  t.strictSame(
    read({ mode: 'audio_transcription', input_cost_per_second: 1e-4, output_cost_per_second: 1e-4 }),
    {
      price: { perSecond: 0.0001 },
      unused: [],
    },
  );
  t.strictSame(
    read({ mode: 'video_generation', output_cost_per_second: 0.05, output_cost_per_second_1080p: 0.08 }),
    {
      price: { perSecond: 0.05, seconds: [{ resolution: '1080p', usd: 0.08 }] },
      unused: [],
    },
  );
  t.strictSame(read({ mode: 'rerank', input_cost_per_query: 0.002 })?.price, { perCall: 0.002 });
  const sized = {
    'high/1024-x-1024/m': { mode: 'image_generation', input_cost_per_pixel: 1.59263611e-7 },
    '1024-x-1536/m': { mode: 'image_generation', output_cost_per_image: 0.06 },
    '1024-x-1536/other': { mode: 'image_generation', output_cost_per_image: 9 },
  };
  t.strictSame(read({ mode: 'image_generation' }, sized)?.price.images, [
    { size: '1024x1024', usd: 0.167, quality: 'high' },
    { size: '1024x1536', usd: 0.06 },
  ]);
  t.strictSame(
    read({ mode: 'image_generation', input_cost_per_token: 5e-6, output_cost_per_image_token: 4e-5 }, sized)
      ?.price,
    { input: 5, imageOutput: 40 },
    'what is billed by tokens is not billed by the image as well',
  );
});

test('characters have the price of the list, unless it has one of tokens', async (t) => {
  const speech = { mode: 'audio_speech', litellm_provider: 'openai' };
  t.strictSame(read({ ...speech, input_cost_per_character: 1.5e-5 }), {
    price: { characters: 15 },
    unused: [],
  });
  t.strictSame(
    read({
      ...speech,
      input_cost_per_character: 3e-5,
      output_cost_per_character: 3e-5,
      input_cost_per_token: 0,
    })?.price,
    { input: 0, characters: 30 },
  );
  t.strictSame(read({ ...speech, output_cost_per_character: 1e-5 })?.price, { characters: 10 });
  t.strictSame(read({ ...speech, input_cost_per_character: 1e-5, output_cost_per_character: 0 }), {
    price: { characters: 10 },
    unused: [],
  });
  t.strictSame(
    read({
      mode: 'chat',
      input_cost_per_token: 1e-6,
      input_cost_per_character: 2.5e-7,
      output_cost_per_character: 5e-7,
    }),
    { price: { input: 1 }, unused: ['input_cost_per_character', 'output_cost_per_character'] },
    'a vendor that counts tokens charges them',
  );
  t.strictSame(
    read({ mode: 'chat', input_cost_per_character: 2.5e-7, output_cost_per_character: 5e-7 }),
    { price: {}, unused: ['input_cost_per_character', 'output_cost_per_character'] },
    'only speech counts characters',
  );
});

test('a part that is listed at the price of the whole has that of long inputs and tiers, too', async (t) => {
  const entry = {
    input_cost_per_token: 1.25e-6,
    input_cost_per_token_above_200k_tokens: 2.5e-6,
    input_cost_per_token_priority: 2.25e-6,
    output_cost_per_token: 10e-6,
    output_cost_per_token_above_200k_tokens: 15e-6,
    output_cost_per_token_priority: 18e-6,
    output_cost_per_reasoning_token: 10e-6,
    input_cost_per_audio_token: 1.25e-6,
  };
  const expected = {
    input: 1.25,
    output: 10,
    steps: [{ aboveInput: 200_000, input: 2.5, output: 15 }],
    tiers: {
      priority: { input: 2.25, output: 18, steps: [{ aboveInput: 200_000, input: 2.5, output: 15 }] },
    },
  };
  t.strictSame(read(entry)?.price, expected);
  const own = { ...entry, output_cost_per_reasoning_token_priority: 12e-6 };
  t.match(read(own)?.price, { reasoning: 10, tiers: { priority: { reasoning: 12 } } });
  const uplift = { ...entry, regional_processing_uplift_multiplier_eu: 1.1 };
  t.strictSame(read(uplift)?.unused, ['regional_processing_uplift_multiplier_eu']);
});

test('what is no entry, or no amount, is no price', async (t) => {
  for (const list of [{}, { m: null }, { m: 'x' }, { m: [] }]) t.equal(listedPrice(list, 'm'), null);
  t.equal(listedPrice({}, 'constructor'), null);
  for (const input_cost_per_token of [null, '1', -1, {}])
    t.strictSame(read({ input_cost_per_token })?.price, {}, JSON.stringify(input_cost_per_token));
});

const target = (upstream: string, model?: string) => ({
  upstream,
  ...(model === undefined ? {} : { model }),
});
const upstreams = {
  deep: { kind: 'chat', baseUrl: 'https://api.deepseek.com/v1' },
  own: { kind: 'chat', baseUrl: 'no URL' },
};
const list = JSON.stringify({
  v3: { input_cost_per_token: 1e-6 },
  'deepseek/v3': { input_cost_per_token: 2e-6 },
  'else/v3': { input_cost_per_token: 3e-6 },
});

test('a model is looked for as its targets call it, by their hosts, and then as clients call it', async (t) => {
  const models = {
    hosted: { targets: [target('deep', 'v3')] },
    bare: { targets: [target('own', 'v3')] },
    v3: { targets: [target('own', 'unknown')] },
    later: { targets: [target('own', 'unknown'), target('deep', 'v3')] },
    priced: { targets: [target('own', 'v3')], price: { input: 9 } },
    missing: { targets: [target('own')] },
  };
  const config = JSON.stringify({ upstreams, models });
  const { prices, notes } = importPrices(config, list, false);
  t.strictSame(prices, { hosted: { input: 2 }, bare: { input: 1 }, v3: { input: 1 }, later: { input: 2 } });
  t.match(notes, [/^models\.priced has a price/, /^the list has no price for missing$/]);
  t.strictSame(importPrices(config, list, true).prices.priced, { input: 1 });
});

test("a provider is recognised by its host, also where the list's name for it is another", async (t) => {
  const priceAt = (host: string, keys: readonly string[]) => {
    const entries = keys.map((key, index) => [key, { input_cost_per_token: (index + 1) * 1e-6 }]);
    const config = {
      upstreams: { u: { kind: 'chat', baseUrl: `https://${host}/v1` } },
      models: { m: { targets: [target('u', 'n')] } },
    };
    return importPrices(JSON.stringify(config), JSON.stringify(Object.fromEntries(entries)), false).prices.m
      ?.input;
  };
  for (const [host, provider] of [
    ['api.x.ai', 'xai'],
    ['api.z.ai', 'zai'],
    ['api.together.xyz', 'together_ai'],
    ['api.fireworks.ai', 'fireworks_ai'],
    ['generativelanguage.googleapis.com', 'gemini'],
    ['europe-west4-aiplatform.googleapis.com', 'vertex_ai'],
    ['api.voyageai.com', 'voyage'],
    ['ark.cn-beijing.volces.com', 'volcengine'],
  ] as const)
    t.equal(priceAt(host, ['n', 'other/n', `${provider}/n`]), 3, host);
  t.equal(priceAt('r.openai.azure.com', ['n', 'azure_ai/n', 'azure/n']), 3, 'its own name comes first');
  t.equal(priceAt('r.openai.azure.com', ['openai/n', 'azure/n']), 2, 'and that of the one whose host it is');
  t.equal(priceAt('xai.openai.azure.com', ['xai/n', 'azure/n']), 2, 'not what its owner calls it');
  t.equal(priceAt('api.notvoyageai.com', ['n', 'voyage/n']), 1);
  t.equal(priceAt('r.services.ai.azure.com', ['n', 'azure_ai/n']), 2);
});

test('a price of a provider other than those at its hosts is named', async (t) => {
  const entries = {
    n: { input_cost_per_token: 1e-6, litellm_provider: 'openai' },
    'vendor/n': { input_cost_per_token: 2e-6, litellm_provider: 'vendor' },
    chat: { input_cost_per_token: 3e-6, litellm_provider: 'vendor_chat' },
    gemini: { input_cost_per_token: 4e-6, litellm_provider: 'vertex_ai-language-models' },
    claude: { input_cost_per_token: 5e-6, litellm_provider: 'bedrock_converse' },
    old: { input_cost_per_token: 6e-6, litellm_provider: 'text-completion-vendor' },
  };
  const imported = (host: string, name: string, ofClients = 'm') => {
    const config = {
      upstreams: { u: { kind: 'chat', baseUrl: `https://${host}/v1` } },
      models: { [ofClients]: { targets: [target('u', name)] } },
    };
    const { prices, notes } = importPrices(JSON.stringify(config), JSON.stringify(entries), false);
    return [prices[ofClients]?.input, ...notes];
  };
  const of = (model: string, provider: string, host: string) =>
    `models.${model} has the price of ${provider}, which is not known as the provider at ${host}: see that it is the right one`;
  t.strictSame(imported('api.openai.com', 'n'), [1]);
  t.strictSame(imported('api.vendor.com', 'n'), [2]);
  t.strictSame(imported('api.vendor.com', 'chat'), [3]);
  t.strictSame(imported('api.vendor.com', 'old'), [6]);
  t.strictSame(imported('us-east5-aiplatform.googleapis.com', 'gemini'), [4]);
  t.strictSame(imported('bedrock-runtime.us-east-1.amazonaws.com', 'claude'), [5]);
  t.strictSame(imported('proxy.example', 'n'), [1, of('m', 'openai', 'proxy.example')]);
  t.strictSame(imported('api.else.com', 'vendor/n'), [2, of('m', 'vendor', 'api.else.com')]);
  t.strictSame(imported('generativelanguage.googleapis.com', 'gemini'), [
    4,
    of('m', 'vertex_ai-language-models', 'generativelanguage.googleapis.com'),
  ]);
  t.strictSame(imported('api.vendor.com', 'unknown', 'n'), [1, of('n', 'openai', 'api.vendor.com')]);
});

test('a model may be called as a member that every object has', async (t) => {
  const named = (value: string) => `{"__proto__": ${value}, "constructor": ${value}}`;
  const config = `{"models": ${named('{"targets": []}')}}`;
  const { prices, notes } = importPrices(config, named('{"input_cost_per_token": 1e-6}'), false);
  t.strictSame(Object.entries(prices), [
    ['__proto__', { input: 1 }],
    ['constructor', { input: 1 }],
  ]);
  t.strictSame(notes, []);
  t.match(writePrices(config, prices), /"__proto__":\s*\{\s*"targets":\s*\[\],\s*"price"/);
});

test('prices are written beside what stands there', async (t) => {
  const config = `{
  // models
  "models": {
    "a": {"targets": []}, // the first
    "b": {"targets": [], "price": {"input": 1}}
  }
}
`;
  const written = writePrices(config, { a: { input: 2 }, b: { input: 3 } });
  t.match(written, /\/\/ models[\s\S]*\/\/ the first/);
  t.strictSame(JSON.parse(written.replaceAll(/\/\/.*/g, '')), {
    models: { a: { targets: [], price: { input: 2 } }, b: { targets: [], price: { input: 3 } } },
  });
});

test('a config or list that is no JSON is refused', async (t) => {
  t.throws(() => importPrices('{', list, false), ConfigError);
  const notJson = { message: 'the list of prices is not a JSON object' };
  for (const text of ['', '[]', '{']) t.throws(() => importPrices('{}', text, false), notJson, text);
});

test('a model whose entry names no price that can be taken is not free', async (t) => {
  const entries = { a: { max_tokens: 9 }, b: { ocr_cost_per_page: 1 }, c: { input_cost_per_token: 0 } };
  const config = JSON.stringify({ models: { a: {}, b: {}, c: {} } });
  const { prices, notes } = importPrices(config, JSON.stringify(entries), false);
  t.strictSame(prices, { c: { input: 0 } });
  t.match(notes, [
    /^models\.b would be priced without ocr_cost_per_page/,
    /^the list has no price for a, b$/,
  ]);
});
