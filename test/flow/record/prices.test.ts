import { test } from 'tap';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import {
  askChat,
  askGoogle,
  askMessages,
  askResponses,
  callPriced,
  contents,
  type PricedCall,
  streamed,
} from '../../support/billing/priced-calls.js';
import { testKey } from '../../support/gateway.js';
import { startLedger } from '../../support/ledger.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

/** USD for a million tokens: a token costs a thousand times as many nano-dollars. */
const price = {
  input: 1,
  output: 2,
  cached: 3,
  cacheWritten: 5,
  cacheWrittenHour: 7,
  audioInput: 11,
  audioOutput: 13,
  cachedAudio: 17,
  imageInput: 19,
  imageOutput: 23,
  cachedImage: 29,
  reasoning: 31,
  perSearch: 0.01,
  perSecond: 0.1,
  images: [
    { size: '1024x1024', quality: 'high', usd: 0.2 },
    { size: '1024x1536', usd: 0.3 },
  ],
  steps: [{ aboveInput: 1000, input: 4 }],
  tiers: { flex: 0.5, priority: 2, fast: 6 },
};
const search = 10_000_000;

interface Case extends PricedCall {
  /** A JSON body, or the events of a stream. */
  readonly answer: object | readonly string[];
  readonly record: Partial<LedgerRecord>;
  /** What is charged, in nano-dollars. */
  readonly nanos: number;
}

const askGoogleStream = { path: '/v1beta/models/MODEL:streamGenerateContent?alt=sse', body: { contents } };

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { readonly type: string; readonly [member: string]: unknown }): string =>
  `event: ${value.type}\n${data(value)}`;

const chatUsage = {
  prompt_tokens: 100,
  completion_tokens: 50,
  prompt_tokens_details: { cached_tokens: 40, audio_tokens: 20, image_tokens: 10 },
  completion_tokens_details: { reasoning_tokens: 5, audio_tokens: 8 },
};
const chatRecord = {
  inputTokens: 100,
  outputTokens: 50,
  cachedTokens: 40,
  reasoningTokens: 5,
  audioInputTokens: 20,
  imageInputTokens: 10,
  audioOutputTokens: 8,
};
const chatNanos = 1000 * (30 * 1 + 40 * 3 + 20 * 11 + 10 * 19 + 37 * 2 + 8 * 13 + 5 * 31);
const chatAnswer = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: chatUsage,
};
const chatChunk = (more: object) => data({ id: 'c', object: 'chat.completion.chunk', created: 1, ...more });
const chatStream = (more: object = {}) => [
  chatChunk({ choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: 'stop' }] }),
  chatChunk({ choices: [], usage: chatUsage, ...more }),
  'data: [DONE]\n\n',
];

const searchItem = {
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'a' },
};
const openedPage = { ...searchItem, id: 'ws_2', action: { type: 'open_page', url: 'https://example.com' } };
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'hi', annotations: [] }],
};
const response = (tier: string, metadata: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [searchItem, openedPage, { ...searchItem, id: 'ws_3' }, message],
  service_tier: tier,
  tools: [{ type: 'function', name: 'f', parameters: { type: 'object', description: 'x'.repeat(4000) } }],
  usage: {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 40 },
    output_tokens: 50,
    output_tokens_details: { reasoning_tokens: 5 },
    total_tokens: 150,
  },
  metadata,
});
/** What clients may send to have it repeated behind the usage. */
const plantedTier = { service_tier: 'flex', note: 'service_tier' };
const plantedUsage = { usage: { input_tokens: 0, output_tokens: 0 }, service_tier: 'flex' };
const responseStream = (tier: string, metadata: object = {}) => [
  named({
    type: 'response.created',
    response: { ...response('auto'), status: 'in_progress', output: [] },
  }),
  ...response(tier).output.flatMap((item, index) => [
    named({ type: 'response.output_item.added', output_index: index, item }),
    named({ type: 'response.output_item.done', output_index: index, item }),
  ]),
  named({ type: 'response.completed', response: response(tier, metadata) }),
];
const responsesRecord = {
  inputTokens: 100,
  outputTokens: 50,
  cachedTokens: 40,
  reasoningTokens: 5,
  searches: 2,
};
const responsesNanos = 1000 * (60 + 40 * 3 + 45 * 2 + 5 * 31) + 2 * search;

const messagesUsage = {
  input_tokens: 60,
  cache_read_input_tokens: 40,
  cache_creation_input_tokens: 30,
  cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
  output_tokens: 50,
  server_tool_use: { web_search_requests: 3, web_fetch_requests: 0 },
};
const messagesRecord = {
  inputTokens: 130,
  outputTokens: 50,
  cachedTokens: 40,
  cacheWrittenTokens: 30,
  cacheWrittenHourTokens: 20,
  searches: 3,
};
const messagesTokens = 1000 * (60 + 40 * 3 + 10 * 5 + 20 * 7 + 50 * 2);
const messagesNanos = messagesTokens + 3 * search;
const messagesAnswer = (more: object) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { ...messagesUsage, ...more },
});
const messagesStream = (more: object) => [
  named({
    type: 'message_start',
    message: {
      ...messagesAnswer({}),
      content: [],
      stop_reason: null,
      usage: { ...messagesUsage, server_tool_use: null, output_tokens: 1, ...more },
    },
  }),
  named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } }),
  named({ type: 'content_block_stop', index: 0 }),
  named({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 50, server_tool_use: { web_search_requests: 3 } },
  }),
  named({ type: 'message_stop' }),
];

const googleUsage = {
  promptTokenCount: 100,
  candidatesTokenCount: 40,
  thoughtsTokenCount: 5,
  toolUsePromptTokenCount: 10,
  cachedContentTokenCount: 30,
  promptTokensDetails: [
    { modality: 'TEXT', tokenCount: 60 },
    { modality: 'AUDIO', tokenCount: 25 },
    { modality: 'IMAGE', tokenCount: 15 },
  ],
  cacheTokensDetails: [
    { modality: 'AUDIO', tokenCount: 20 },
    { modality: 'IMAGE', tokenCount: 10 },
  ],
  candidatesTokensDetails: [
    { modality: 'TEXT', tokenCount: 10 },
    { modality: 'IMAGE', tokenCount: 30 },
  ],
};
const googleRecord = {
  inputTokens: 110,
  outputTokens: 45,
  cachedTokens: 30,
  reasoningTokens: 5,
  audioInputTokens: 25,
  imageInputTokens: 15,
  cachedAudioTokens: 20,
  cachedImageTokens: 10,
  imageOutputTokens: 30,
};
const googleTokens = 1000 * (70 + 20 * 17 + 10 * 29 + 5 * 11 + 5 * 19 + 10 * 2 + 30 * 23 + 5 * 31);
const googleAnswer = (usage: object = {}) => ({
  candidates: [
    {
      content: { role: 'model', parts: [{ text: 'hi' }] },
      finishReason: 'STOP',
      groundingMetadata: { webSearchQueries: ['b'], imageSearchQueries: ['a', 'b'], groundingChunks: [] },
    },
  ],
  usageMetadata: { ...googleUsage, ...usage },
});
const googleStream = (usage: object = {}) => [
  data({
    candidates: [
      {
        content: { role: 'model', parts: [{ text: 'h' }] },
        groundingMetadata: { imageSearchQueries: ['a'] },
      },
    ],
    usageMetadata: { promptTokenCount: 100 },
  }),
  data(googleAnswer(usage)),
];

const cases: readonly Case[] = [
  { name: 'chat', kind: 'chat', ...askChat, answer: chatAnswer, record: chatRecord, nanos: chatNanos },
  {
    name: 'chat, streamed',
    kind: 'chat',
    ...streamed(askChat),
    answer: chatStream(),
    record: { ...chatRecord, tier: 'standard' },
    nanos: chatNanos,
  },
  {
    name: 'chat of the flex tier',
    kind: 'chat',
    ...askChat,
    answer: { ...chatAnswer, service_tier: 'flex' },
    record: { ...chatRecord, tier: 'flex' },
    nanos: chatNanos / 2,
  },
  {
    name: 'chat of the priority tier, streamed',
    kind: 'chat',
    ...streamed(askChat),
    answer: chatStream({ service_tier: 'priority' }),
    record: { ...chatRecord, tier: 'priority' },
    nanos: chatNanos * 2,
  },
  {
    name: 'chat with queries',
    kind: 'chat',
    ...askChat,
    answer: {
      ...chatAnswer,
      usage: { prompt_tokens: 2000, completion_tokens: 1, num_search_queries: 4 },
      service_tier: 'default',
    },
    record: { inputTokens: 2000, searches: 4, tier: 'standard' },
    nanos: 2000 * 4000 + 2000 + 4 * search,
  },
  {
    name: 'chat of a research that has read its sources',
    kind: 'chat',
    ...askChat,
    answer: {
      ...chatAnswer,
      usage: {
        prompt_tokens: 33,
        completion_tokens: 7,
        total_tokens: 40,
        citation_tokens: 2000,
        num_search_queries: 18,
      },
      service_tier: 'default',
    },
    record: { inputTokens: 2033, outputTokens: 7, searches: 18 },
    nanos: 2033 * 4000 + 7 * 2000 + 18 * search,
  },
  {
    name: 'chat with searches of several tools',
    kind: 'chat',
    ...askChat,
    answer: {
      ...chatAnswer,
      usage: {
        prompt_tokens: 2000,
        completion_tokens: 1,
        num_sources_used: 0,
        num_server_side_tools_used: 4,
        server_side_tool_usage_details: { web_search_calls: 2, x_search_calls: 1, code_interpreter_calls: 1 },
      },
      service_tier: 'default',
    },
    record: { inputTokens: 2000, searches: 3 },
    nanos: 2000 * 4000 + 2000 + 3 * search,
  },
  {
    name: 'chat of a gateway that has it from messages, with what is cached for an hour',
    kind: 'chat',
    ...askChat,
    answer: {
      ...chatAnswer,
      usage: {
        prompt_tokens: 2000,
        completion_tokens: 1,
        prompt_tokens_details: {
          cached_tokens: 0,
          cache_creation_tokens: 1500,
          cache_creation_token_details: { ephemeral_5m_input_tokens: 500, ephemeral_1h_input_tokens: 1000 },
        },
        cache_creation_input_tokens: 1500,
        cache_read_input_tokens: 0,
      },
      service_tier: 'default',
    },
    record: { inputTokens: 2000, cacheWrittenTokens: 1500, cacheWrittenHourTokens: 1000 },
    nanos: 500 * 4000 + 500 * 5000 + 1000 * 7000 + 2000,
  },
  {
    name: 'chat for a client of messages',
    kind: 'chat',
    ...askMessages,
    answer: { ...chatAnswer, service_tier: 'flex' },
    record: { ...chatRecord, protocol: 'messages', tier: 'flex' },
    nanos: chatNanos / 2,
  },
  {
    name: 'chat for a client of messages, streamed',
    kind: 'chat',
    ...streamed(askMessages),
    answer: chatStream({ service_tier: 'flex' }),
    record: { ...chatRecord, protocol: 'messages', tier: 'flex' },
    nanos: chatNanos / 2,
  },
  {
    name: 'responses',
    kind: 'responses',
    ...askResponses,
    answer: response('flex'),
    record: { ...responsesRecord, tier: 'flex' },
    nanos: responsesNanos / 2,
  },
  {
    name: 'responses with searches of several tools, whose items do not show them all',
    kind: 'responses',
    ...askResponses,
    answer: {
      ...response('default'),
      usage: {
        ...response('default').usage,
        num_sources_used: 0,
        server_side_tool_usage_details: { web_search_calls: 3, x_search_calls: 2 },
      },
    },
    record: { ...responsesRecord, searches: 5 },
    nanos: responsesNanos + 3 * search,
  },
  {
    name: 'responses that no step is exceeded by, but for what a tool has read',
    kind: 'responses',
    ...askResponses,
    answer: {
      ...response('default'),
      usage: { input_tokens: 950, output_tokens: 50, total_tokens: 1000 },
      tool_usage: {
        image_gen: {
          input_tokens: 100,
          input_tokens_details: { image_tokens: 100 },
          output_tokens: 10,
          output_tokens_details: { image_tokens: 10 },
        },
      },
    },
    record: { inputTokens: 1050, outputTokens: 60 },
    nanos: 1000 * (950 + 50 * 2 + 100 * 19 + 10 * 23) + 2 * search,
  },
  {
    name: 'responses of more than passes in one piece else',
    kind: 'responses',
    ...askResponses,
    answer: { ...response('flex'), metadata: { long: 'x'.repeat(600_000) } },
    record: { ...responsesRecord, tier: 'flex' },
    nanos: responsesNanos / 2,
  },
  {
    name: 'responses, streamed, whose last event is longer than what is kept of it',
    kind: 'responses',
    ...streamed(askResponses),
    answer: responseStream('priority'),
    record: { ...responsesRecord, tier: 'priority' },
    nanos: responsesNanos * 2,
  },
  {
    name: "responses that repeat a tier of their client's",
    kind: 'responses',
    ...askResponses,
    answer: response('priority', plantedTier),
    record: { ...responsesRecord, tier: 'priority' },
    nanos: responsesNanos * 2,
  },
  {
    name: "responses that repeat a usage of their client's",
    kind: 'responses',
    ...askResponses,
    answer: response('priority', plantedUsage),
    record: { ...responsesRecord, tier: 'priority' },
    nanos: responsesNanos * 2,
  },
  {
    name: "responses, streamed, that repeat a tier of their client's",
    kind: 'responses',
    ...streamed(askResponses),
    answer: responseStream('priority', plantedTier),
    record: { ...responsesRecord, tier: 'priority' },
    nanos: responsesNanos * 2,
  },
  {
    name: "responses, streamed, that repeat a usage of their client's",
    kind: 'responses',
    ...streamed(askResponses),
    answer: responseStream('priority', plantedUsage),
    record: { ...responsesRecord, tier: 'priority' },
    nanos: responsesNanos * 2,
  },
  {
    name: 'responses, streamed, that repeat more behind their usage than is kept',
    kind: 'responses',
    ...streamed(askResponses),
    answer: responseStream('priority', { a: 'x'.repeat(8000) }),
    record: { ...responsesRecord, tier: 'priority' },
    nanos: responsesNanos * 2,
  },
  {
    name: 'responses for a client of chat',
    kind: 'responses',
    ...askChat,
    answer: response('flex'),
    record: { ...responsesRecord, protocol: 'chat', tier: 'flex' },
    nanos: responsesNanos / 2,
  },
  {
    name: 'responses for a client of chat, streamed',
    kind: 'responses',
    ...streamed(askChat),
    answer: responseStream('priority'),
    record: { ...responsesRecord, protocol: 'chat', tier: 'priority' },
    nanos: responsesNanos * 2,
  },
  {
    name: 'messages',
    kind: 'messages',
    ...askMessages,
    answer: messagesAnswer({ service_tier: 'standard' }),
    record: { ...messagesRecord, tier: 'standard' },
    nanos: messagesNanos,
  },
  {
    name: 'messages at the fast speed, streamed',
    kind: 'messages',
    ...streamed(askMessages),
    answer: messagesStream({ service_tier: 'priority', speed: 'fast' }),
    record: { ...messagesRecord, tier: 'fast' },
    nanos: messagesNanos * 6,
  },
  {
    name: 'messages for a client of generateContent',
    kind: 'messages',
    ...askGoogle,
    answer: messagesAnswer({ service_tier: 'priority' }),
    record: { ...messagesRecord, protocol: 'generateContent', tier: 'priority' },
    nanos: messagesNanos * 2,
  },
  {
    name: 'messages for a client of chat, streamed',
    kind: 'messages',
    ...streamed(askChat),
    answer: messagesStream({ service_tier: 'priority' }),
    record: { ...messagesRecord, protocol: 'chat', tier: 'priority' },
    nanos: messagesNanos * 2,
  },
  {
    name: 'messages that no step is exceeded by, but for what a compaction has read',
    kind: 'messages',
    ...askMessages,
    answer: {
      ...messagesAnswer({}),
      usage: {
        input_tokens: 600,
        output_tokens: 1,
        iterations: [
          { type: 'compaction', input_tokens: 700, output_tokens: 5 },
          { type: 'message', input_tokens: 600, output_tokens: 1 },
        ],
      },
    },
    record: { inputTokens: 1300, outputTokens: 6 },
    nanos: 1000 * (1300 + 6 * 2),
  },
  {
    name: 'generateContent',
    kind: 'generateContent',
    ...askGoogle,
    answer: googleAnswer(),
    record: { ...googleRecord, searches: 2 },
    nanos: googleTokens + 2 * search,
  },
  {
    name: 'generateContent, streamed',
    kind: 'generateContent',
    ...askGoogleStream,
    answer: googleStream({ serviceTier: 'flex' }),
    record: { ...googleRecord, searches: 2, tier: 'flex' },
    nanos: (googleTokens + 2 * search) / 2,
  },
  {
    name: 'generateContent for a client of responses',
    kind: 'generateContent',
    ...askResponses,
    answer: googleAnswer({ trafficType: 'ON_DEMAND_PRIORITY' }),
    record: { ...googleRecord, protocol: 'responses', searches: 2, tier: 'priority' },
    nanos: (googleTokens + 2 * search) * 2,
  },
  {
    name: 'generateContent for a client of messages, streamed',
    kind: 'generateContent',
    ...streamed(askMessages),
    answer: googleStream(),
    record: { ...googleRecord, protocol: 'messages', searches: 2 },
    nanos: googleTokens + 2 * search,
  },
  {
    name: 'images by tokens, and by size and quality',
    kind: 'chat',
    path: '/v1/images/generations',
    body: { prompt: 'a cat', n: 2, size: 'auto' },
    answer: {
      created: 1,
      data: [{ b64_json: 'AAAA' }, { b64_json: 'AAAA' }],
      quality: 'high',
      size: '1024x1024',
      usage: {
        input_tokens: 50,
        output_tokens: 100,
        total_tokens: 150,
        input_tokens_details: { text_tokens: 10, image_tokens: 40 },
      },
    },
    record: { inputTokens: 50, outputTokens: 100, imageInputTokens: 40, imageOutputTokens: 100, units: 2 },
    nanos: 1000 * (10 + 40 * 19 + 100 * 23) + 2 * 200_000_000,
  },
  {
    name: 'an image whose size the client alone tells',
    kind: 'chat',
    path: '/v1/images/generations',
    body: { prompt: 'a cat', size: '1024x1536' },
    answer: { created: 1, data: [{ url: 'https://example.com/a.png' }] },
    record: { tokensKnown: 'none', units: 1 },
    nanos: 300_000_000,
  },
  {
    name: 'speech by tokens, streamed',
    kind: 'chat',
    path: '/v1/audio/speech',
    body: { input: 'hi', voice: 'alloy', stream_format: 'sse' },
    answer: [
      data({ type: 'speech.audio.delta', audio: 'AAAA' }),
      data({ type: 'speech.audio.done', usage: { input_tokens: 4, output_tokens: 30, total_tokens: 34 } }),
    ],
    record: { inputTokens: 4, outputTokens: 30, audioOutputTokens: 30 },
    nanos: 1000 * (4 + 30 * 13),
  },
];

/** Makes models. @param target merged over every target */
const modelWith =
  (target: object) =>
  (upstream: string, ofTarget: object): object => ({
    protocols: [
      'chat',
      'responses',
      'messages',
      'generateContent',
      ...(upstream === 'chat' ? ['images', 'audio'] : []),
    ],
    targets: [{ upstream, ...target, ...ofTarget }],
    price,
  });

function bytesOf(answer: Case['answer']): string {
  if (!Array.isArray(answer)) return jsonAnswer(200, JSON.stringify(answer));
  return streamHead + (answer as readonly string[]).map(chunk).join('') + lastChunk;
}

test('what each protocol reports, streamed or not, translated or not, is in the ledger at its exact price', async (t) => {
  const { upstream, gateway, lines } = await startLedger(t, modelWith({}));
  const ids: string[] = [];
  for (const each of cases) {
    upstream.answer = bytesOf(each.answer);
    ids.push(await callPriced(t, gateway.url, each));
  }
  const records = await lines(cases.length);
  for (const [index, { name, record, nanos }] of cases.entries()) {
    const line = records.find(({ requestId }) => requestId === ids[index]);
    t.match(line, { units: 1, ...record, costNanoUsd: nanos }, name);
  }
});

test('what the vendor is paid stands beside what the client is charged', async (t) => {
  const cost = { input: 0.5, cached: 0.25, output: 1 };
  const groups = { default: { models: ['*'], priceFactor: 1.5 } };
  const { upstream, gateway, lines } = await startLedger(t, modelWith({ cost }), { groups });
  const ask = async () => {
    const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'chat', ...askChat.body });
    const answered = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body });
    await answered.text();
  };
  upstream.answer = bytesOf({ ...chatAnswer, service_tier: 'flex' });
  await ask();
  upstream.answer = jsonAnswer(400, '{"error":{"message":"no"}}');
  await ask();
  const [served, failed] = await lines(2);
  t.match(served, {
    costNanoUsd: (chatNanos * 1.5) / 2,
    paidNanoUsd: 1000 * (60 * 0.5 + 40 * 0.25 + 50 * 1),
  });
  t.match(failed, { costNanoUsd: 0, paidNanoUsd: 0, units: 0 });
});
