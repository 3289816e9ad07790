import { test } from 'tap';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import { testKey } from '../../support/gateway.js';
import { startLedger } from '../../support/ledger.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

/** USD for a million tokens, for a call and for a second. */
const prices = {
  tokens: { input: 1, output: 10, cached: 0.1, cacheWritten: 2, cacheWrittenHour: 3, reasoning: 11 },
  ranks: { perCall: 0.002 },
  sound: { perSecond: 0.001 },
  images: { perCall: 0.04 },
};

interface Case {
  readonly name: string;
  /** Of the upstream. */
  readonly kind:
    | 'chat'
    | 'messages'
    | 'generateContent'
    | 'responses'
    | 'ranks'
    | 'words'
    | 'sound'
    | 'images';
  /** What clients ask by, each in turn. */
  readonly asks: readonly Ask[];
  readonly answer: string;
  readonly record: Partial<LedgerRecord>;
}

interface Ask {
  readonly path: string;
  readonly body: object | (() => FormData);
}

const hello = [{ role: 'user', content: 'hi' }];
const askChat: Ask = { path: '/v1/chat/completions', body: { messages: hello } };
const askMessages: Ask = { path: '/v1/messages', body: { max_tokens: 9, messages: hello } };
const askResponses: Ask = { path: '/v1/responses', body: { input: 'hi' } };
const askRanks: Ask = { path: '/v1/rerank', body: { query: 'a', documents: ['b', 'c'] } };
const askImages: Ask = {
  path: '/v1/images/generations',
  body: { prompt: 'a', sequential_image_generation: 'auto' },
};
const askTwoImages: Ask = { path: '/v1/images/generations', body: { prompt: 'a', n: 2 } };
const transcriptOf = (model: string): Ask => ({
  path: '/v1/audio/transcriptions',
  body: () => {
    const form = new FormData();
    form.set('model', model);
    form.set('file', new Blob([Buffer.alloc(32_000, 7)]), 'a.mp3');
    return form;
  },
});
const askTranscript = transcriptOf('sound');
const streamed = ({ path, body }: Ask): Ask => ({ path, body: { ...body, stream: true } });
const inText = [askChat, askMessages];
const inStreams = inText.map(streamed);

const whole = (answer: object): string => jsonAnswer(200, JSON.stringify(answer));
const stream = (events: readonly string[]): string => streamHead + events.map(chunk).join('') + lastChunk;
const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { readonly type: string; readonly [member: string]: unknown }): string =>
  `event: ${value.type}\n${data(value)}`;

const chatAnswer = (usage: object): string =>
  whole({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'hello there' }, finish_reason: 'stop' }],
    usage,
  });
const chatChunk = (more: object): string =>
  data({ id: 'c', object: 'chat.completion.chunk', created: 1, ...more });
const chatStream = (last: object, ...more: readonly object[]): string =>
  stream([
    chatChunk({ choices: [{ index: 0, delta: { content: 'hello there' }, finish_reason: null }] }),
    chatChunk(last),
    ...more.map(chatChunk),
    'data: [DONE]\n\n',
  ]);
const finished = { index: 0, delta: {}, finish_reason: 'stop' };
const hundred = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'hello there' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
};
const messageStream = (usage: object, delta: object): string =>
  stream([
    named({ type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } }),
    named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello there' } }),
    named({ type: 'content_block_stop', index: 0 }),
    named({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, ...delta }),
    named({ type: 'message_stop' }),
  ]);
const written = { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 };
const splitUsage = { input_tokens: 100, output_tokens: 10, cache_creation: written };
const splitRecord = { inputTokens: 400, cacheWrittenTokens: 300, cacheWrittenHourTokens: 200 };

const response = (usage: object, status = 'completed') => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status,
  model: 'm',
  output: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'hello there', annotations: [] }],
    },
  ],
  tools: [],
  usage,
});
const reasoned = {
  input_tokens: 100,
  output_tokens: 10,
  output_tokens_details: { reasoning_tokens: 40 },
  total_tokens: 150,
};

const exact = { tokensKnown: 'exact', inputTokens: 100, outputTokens: 10 } as const;

/** What Ark tells of images, one of which has failed. */
const ofImage = (input: number, output: number) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
  input_tokens_details: { image_tokens: 5, text_tokens: input - 5 },
});
const arkUsage = (images: number) => ({
  generated_images: images,
  output_tokens: 4000 * images,
  total_tokens: 4000 * images,
});
const arkAnswer = (images: number): string =>
  whole({
    model: 'm',
    created: 1,
    data: [
      ...Array.from({ length: images }, (_, index) => ({ url: `https://a.invalid/${index}` })),
      { error: { code: 'OutputImageSensitiveContentDetected', message: 'refused' } },
    ],
    usage: arkUsage(images),
  });

/** Of servers that tell no usage of images, two of which were asked for. */
const imageList = (...data: readonly unknown[]): string => whole({ created: 1, data });
const refusal = { code: 'content_policy_violation', message: 'refused' };

const cases: readonly Case[] = [
  {
    name: 'nothing, for no images',
    kind: 'images',
    asks: [askTwoImages],
    answer: imageList(),
    record: { units: 0, costNanoUsd: 0 },
  },
  {
    name: 'nothing, for one image of two',
    kind: 'images',
    asks: [askTwoImages],
    answer: imageList({ b64_json: 'aGk=' }, { error: refusal }, { error: 'refused' }, null),
    record: { units: 1, costNanoUsd: 40_000_000 },
  },
  {
    name: 'nothing, for images that came',
    kind: 'images',
    asks: [askTwoImages],
    answer: imageList({ url: 'https://a.invalid/1', error: null }, { url: 'https://a.invalid/2', error: '' }),
    record: { units: 2, costNanoUsd: 80_000_000 },
  },
  {
    name: 'nothing, for an answer in a form of its own',
    kind: 'images',
    asks: [askTwoImages],
    answer: whole({ images: [{ url: 'https://a.invalid/1' }] }),
    record: { units: 2, costNanoUsd: 80_000_000 },
  },
  {
    name: 'counts that are no whole numbers',
    kind: 'chat',
    asks: inText,
    answer: chatAnswer({ prompt_tokens: 100.2, completion_tokens: 10.5 }),
    record: exact,
  },
  {
    name: 'the same of messages',
    kind: 'messages',
    asks: inText,
    answer: whole({ ...message, usage: { input_tokens: 100.2, output_tokens: 10.5 } }),
    record: exact,
  },
  {
    name: 'the same of a stream of messages',
    kind: 'messages',
    asks: inStreams,
    answer: messageStream({ input_tokens: 100.2, output_tokens: 1 }, { usage: { output_tokens: 10.5 } }),
    record: exact,
  },
  {
    name: 'input and total alone',
    kind: 'chat',
    asks: inText,
    answer: chatAnswer({ prompt_tokens: 100, total_tokens: 110 }),
    record: exact,
  },
  {
    name: 'nothing for an answer that says something',
    kind: 'chat',
    asks: inText,
    answer: chatAnswer({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
    record: { tokensKnown: 'estimated', outputTokens: 3 },
  },
  {
    name: 'the same of a stream',
    kind: 'chat',
    asks: inStreams,
    answer: chatStream({ choices: [finished], usage: { prompt_tokens: 0, completion_tokens: 0 } }),
    record: { tokensKnown: 'estimated' },
  },
  {
    name: 'input alone, at the start of a stream of messages',
    kind: 'messages',
    asks: inStreams,
    answer: messageStream({ input_tokens: 100, output_tokens: 0 }, {}),
    record: { tokensKnown: 'estimated', inputTokens: 100, outputTokens: 3 },
  },
  {
    name: 'the same with a first token of output',
    kind: 'messages',
    asks: inStreams,
    answer: messageStream({ input_tokens: 100, output_tokens: 1 }, {}),
    record: { tokensKnown: 'estimated', inputTokens: 100, outputTokens: 3 },
  },
  {
    name: 'a stream of messages that says at its end what it has said at its start',
    kind: 'messages',
    asks: inStreams,
    answer: messageStream({ input_tokens: 100, output_tokens: 1 }, { usage: { output_tokens: 1 } }),
    record: { tokensKnown: 'exact', inputTokens: 100, outputTokens: 1 },
  },
  {
    name: 'a response that has failed',
    kind: 'responses',
    asks: [streamed(askResponses), ...inStreams],
    answer: stream([
      named({
        type: 'response.created',
        response: { ...response(hundred), status: 'in_progress', usage: null },
      }),
      named({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'hello there' }),
      named({
        type: 'response.failed',
        response: { ...response(reasoned, 'failed'), error: { code: 'server_error', message: 'broken' } },
      }),
    ]),
    record: { tokensKnown: 'exact', inputTokens: 100, outputTokens: 50 },
  },
  {
    name: "the sources of xAI's search",
    kind: 'chat',
    asks: inText,
    answer: chatAnswer({ ...hundred, num_sources_used: 3 }),
    record: { ...exact, searches: 3 },
  },
  {
    name: "input alone, at the start of Google's stream",
    kind: 'generateContent',
    asks: inStreams,
    answer: stream([
      data({
        candidates: [{ content: { role: 'model', parts: [{ text: 'hello there' }] }, index: 0 }],
        usageMetadata: { promptTokenCount: 100, totalTokenCount: 100 },
      }),
      data({
        candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }],
      }),
    ]),
    record: { tokensKnown: 'estimated', inputTokens: 100, outputTokens: 3 },
  },
  {
    name: "what DeepSeek's cache had",
    kind: 'chat',
    asks: inText,
    answer: chatAnswer({ ...hundred, prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 }),
    record: { ...exact, cachedTokens: 60 },
  },
  {
    name: 'what gateways call the cache of messages in chat',
    kind: 'chat',
    asks: inText,
    answer: chatAnswer({ ...hundred, cache_creation_input_tokens: 30, cache_read_input_tokens: 60 }),
    record: { ...exact, cachedTokens: 60, cacheWrittenTokens: 30 },
  },
  {
    name: 'usage in a choice',
    kind: 'chat',
    asks: inStreams,
    answer: chatStream({ choices: [{ ...finished, usage: { ...hundred, cached_tokens: 60 } }] }),
    record: { ...exact, cachedTokens: 60 },
  },
  {
    name: "usage in Groq's member",
    kind: 'chat',
    asks: inStreams,
    answer: chatStream({ choices: [finished], x_groq: { id: 'r', usage: hundred } }),
    record: exact,
  },
  {
    name: 'parts of what was written to the cache, without their sum',
    kind: 'messages',
    asks: inText,
    answer: whole({ ...message, usage: splitUsage }),
    record: splitRecord,
  },
  {
    name: 'the same of a stream',
    kind: 'messages',
    asks: inStreams,
    answer: messageStream(splitUsage, { usage: { output_tokens: 10 } }),
    record: splitRecord,
  },
  {
    name: 'the place where it was served',
    kind: 'messages',
    asks: inText,
    answer: whole({ ...message, usage: { input_tokens: 100, output_tokens: 10, inference_geo: 'us' } }),
    record: { ...exact, geo: 'us' },
  },
  {
    name: 'tokens of video',
    kind: 'chat',
    asks: inText,
    answer: chatAnswer({ ...hundred, prompt_tokens_details: { video_tokens: 70 } }),
    record: { ...exact, geo: null, videoInputTokens: 70 },
  },
  {
    name: 'reasoning that is in the total alone',
    kind: 'responses',
    asks: [askResponses, ...inText],
    answer: whole(response(reasoned)),
    record: { tokensKnown: 'exact', inputTokens: 100, outputTokens: 50, reasoningTokens: 40 },
  },
  {
    name: 'searches of a rerank',
    kind: 'ranks',
    asks: [askRanks],
    answer: whole({
      id: 'r',
      results: [{ index: 0, relevance_score: 0.5 }],
      meta: { billed_units: { search_units: 3 } },
    }),
    record: { units: 3, costNanoUsd: 6_000_000 },
  },
  {
    name: "Mistral's seconds of a recording",
    kind: 'sound',
    asks: [askTranscript],
    answer: whole({
      text: 'hello there',
      usage: { prompt_audio_seconds: 203, prompt_tokens: 4, completion_tokens: 641, total_tokens: 645 },
    }),
    record: { mediaSeconds: 203, costNanoUsd: 203_000_000, inputTokens: 4, outputTokens: 641 },
  },
  {
    name: 'an answer that is spoken, of which nothing is told',
    kind: 'chat',
    asks: [askChat],
    answer: whole({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null, audio: { id: 'a', data: 'AAAA', transcript: 'hi' } },
          finish_reason: 'stop',
        },
      ],
    }),
    record: { tokensKnown: 'estimated', outputTokens: 1500 },
  },
  {
    name: 'more images than were asked for',
    kind: 'images',
    asks: [askImages],
    answer: arkAnswer(3),
    record: { units: 3, outputTokens: 12_000, costNanoUsd: 120_000_000 },
  },
  {
    name: 'fewer images than were asked for',
    kind: 'images',
    asks: [{ ...askImages, body: { ...askImages.body, n: 4 } }],
    answer: arkAnswer(3),
    record: { units: 3, outputTokens: 12_000, costNanoUsd: 120_000_000 },
  },
  {
    name: 'images of a stream',
    kind: 'images',
    asks: [streamed(askImages)],
    answer: stream([
      named({ type: 'image_generation.partial_succeeded', image_index: 0, url: 'https://a.invalid/0' }),
      named({ type: 'image_generation.partial_succeeded', image_index: 1, url: 'https://a.invalid/1' }),
      named({ type: 'image_generation.completed', usage: arkUsage(2) }),
    ]),
    record: { units: 2, outputTokens: 8000, costNanoUsd: 80_000_000 },
  },
  {
    name: 'nothing, for images of a large answer, of which one has failed',
    kind: 'images',
    asks: [askTwoImages],
    answer: imageList({ b64_json: 'A'.repeat(400_000) }, { error: refusal }),
    record: { units: 1, costNanoUsd: 40_000_000 },
  },
  {
    name: 'tokens alone, behind images of a large answer',
    kind: 'images',
    asks: [askImages],
    answer: whole({
      created: 1,
      data: [1, 2, 3].map(() => ({ b64_json: 'A'.repeat(300_000), revised_prompt: 'a "data":[{' })),
      usage: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
    }),
    record: { ...exact, units: 3, costNanoUsd: 120_000_000 },
  },
  {
    name: 'nothing, for one image of a stream in which two were asked for',
    kind: 'images',
    asks: [streamed(askTwoImages)],
    answer: stream([
      named({ type: 'image_generation.partial_image', partial_image_index: 0, b64_json: 'A'.repeat(9000) }),
      named({ type: 'image_generation.completed', b64_json: 'A'.repeat(1_500_000) }),
    ]),
    record: { units: 1, costNanoUsd: 40_000_000 },
  },
  {
    name: 'usages of several images of a stream, each in its event',
    kind: 'images',
    asks: [streamed(askTwoImages)],
    answer: stream([
      ...[1, 2].map((index) =>
        named({
          type: 'image_generation.partial_image',
          partial_image_index: index,
          b64_json: 'A'.repeat(9000),
          usage: { input_tokens: 7, output_tokens: 70, total_tokens: 77 },
        }),
      ),
      named({
        type: 'image_generation.completed',
        b64_json: 'A'.repeat(1_500_000),
        usage: ofImage(100, 1000),
      }),
      named({ type: 'image_edit.completed', b64_json: 'AA', usage: ofImage(10, 2000) }),
    ]),
    record: {
      tokensKnown: 'exact',
      units: 2,
      inputTokens: 110,
      imageInputTokens: 10,
      outputTokens: 3000,
      imageOutputTokens: 3000,
    },
  },
  {
    name: "Mistral's tokens of a recording, which are in the total alone",
    kind: 'words',
    asks: [transcriptOf('words')],
    answer: whole({
      text: 'hello there',
      usage: { prompt_audio_seconds: 203, prompt_tokens: 4, total_tokens: 3264, completion_tokens: 635 },
    }),
    record: { tokensKnown: 'exact', inputTokens: 2629, audioInputTokens: 2625, outputTokens: 635 },
  },
  {
    name: 'a total and seconds of a recording, and nothing else',
    kind: 'words',
    asks: [transcriptOf('words')],
    answer: whole({ text: 'hello there', usage: { prompt_audio_seconds: 203, total_tokens: 3264 } }),
    record: { tokensKnown: 'exact', inputTokens: 3264, audioInputTokens: 3264, outputTokens: 0 },
  },
  {
    name: 'seconds of a recording, and nothing else, where tokens are the whole price',
    kind: 'words',
    asks: [transcriptOf('words')],
    answer: whole({ text: 'hello there', usage: { prompt_audio_seconds: 203 } }),
    record: { tokensKnown: 'estimated', audioInputTokens: 2030, outputTokens: 3 },
  },
  {
    name: 'seconds with an exponent',
    kind: 'sound',
    asks: [askTranscript],
    answer: jsonAnswer(200, '{"text":"hello there","usage":{"type":"duration","seconds":1.5e2}}'),
    record: { mediaSeconds: 150, costNanoUsd: 150_000_000 },
  },
  {
    name: 'a duration of next to nothing, with an exponent',
    kind: 'sound',
    asks: [askTranscript],
    answer: jsonAnswer(200, '{"text":"hello there","duration":8.5e-05}'),
    record: { mediaSeconds: 0.000085, costNanoUsd: 0 },
  },
  {
    name: 'seconds beyond any',
    kind: 'sound',
    asks: [askTranscript],
    answer: jsonAnswer(200, '{"text":"hello there","usage":{"type":"duration","seconds":1e+300}}'),
    record: { mediaSeconds: 2.017, costNanoUsd: 2_017_000 },
  },
];

const model = (upstream: string, ofTarget: object) => ({
  protocols: ['chat', 'responses', 'messages'],
  targets: [{ upstream, ...ofTarget }],
  price: prices.tokens,
});
const models = {
  ranks: { protocols: ['rerank'], targets: [{ upstream: 'chat' }], price: prices.ranks },
  sound: { protocols: ['audio'], targets: [{ upstream: 'chat' }], price: prices.sound },
  words: { protocols: ['audio'], targets: [{ upstream: 'chat' }], price: { input: 1, output: 2 } },
  images: { protocols: ['images'], targets: [{ upstream: 'chat' }], price: prices.images },
};

test('what servers tell of usage in forms of their own is charged as it was meant, or estimated and marked', async (t) => {
  const { upstream, gateway, lines } = await startLedger(t, model, { models });
  const asked: { readonly name: string; readonly id: string | null; readonly record: object }[] = [];
  for (const { name, kind, asks, answer, record } of cases) {
    for (const { path, body } of asks) {
      upstream.answer = answer;
      const isForm = typeof body === 'function';
      const answered = await fetch(gateway.url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${testKey}`,
          'anthropic-version': '2023-06-01',
          ...(isForm ? {} : { 'content-type': 'application/json' }),
        },
        body: isForm ? body() : JSON.stringify({ model: kind, ...body }),
      });
      const text = await answered.text();
      t.equal(answered.status, 200, `${name}: ${text.slice(0, 200)}`);
      asked.push({ name: `${name} (${path})`, id: answered.headers.get('x-request-id'), record });
    }
  }
  const records = await lines(asked.length);
  for (const { name, id, record } of asked)
    t.match(
      records.find(({ requestId }) => requestId === id),
      record,
      name,
    );
});
