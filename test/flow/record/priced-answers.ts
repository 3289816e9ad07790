/* What each text protocol's upstream reports of one call, what the ledger then has, and its price. */

import { contents } from '../../support/billing/priced-calls.js';

/** USD for a million tokens: a token costs a thousand times as many nano-dollars. */
export const price = {
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
  tiers: { flex: 0.5, priority: 2, fast: 6, ultrafast: 8 },
};
export const search = 10_000_000;

export const askGoogleStream = {
  path: '/v1beta/models/MODEL:streamGenerateContent?alt=sse',
  body: { contents },
};

export const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { readonly type: string; readonly [member: string]: unknown }): string =>
  `event: ${value.type}\n${data(value)}`;

const chatUsage = {
  prompt_tokens: 100,
  completion_tokens: 50,
  prompt_tokens_details: { cached_tokens: 40, audio_tokens: 20, image_tokens: 10 },
  completion_tokens_details: { reasoning_tokens: 5, audio_tokens: 8 },
};
export const chatRecord = {
  inputTokens: 100,
  outputTokens: 50,
  cachedTokens: 40,
  reasoningTokens: 5,
  audioInputTokens: 20,
  imageInputTokens: 10,
  audioOutputTokens: 8,
};
export const chatNanos = 1000 * (30 * 1 + 40 * 3 + 20 * 11 + 10 * 19 + 37 * 2 + 8 * 13 + 5 * 31);
export const chatAnswer = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: chatUsage,
};
const chatChunk = (more: object) => data({ id: 'c', object: 'chat.completion.chunk', created: 1, ...more });
export const chatStream = (more: object = {}) => [
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
export const response = (tier: string, metadata: object = {}) => ({
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
export const plantedTier = { service_tier: 'flex', note: 'service_tier' };
export const plantedUsage = { usage: { input_tokens: 0, output_tokens: 0 }, service_tier: 'flex' };
export const responseStream = (tier: string, metadata: object = {}) => [
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
export const responsesRecord = {
  inputTokens: 100,
  outputTokens: 50,
  cachedTokens: 40,
  reasoningTokens: 5,
  searches: 2,
};
export const responsesNanos = 1000 * (60 + 40 * 3 + 45 * 2 + 5 * 31) + 2 * search;

const messagesUsage = {
  input_tokens: 60,
  cache_read_input_tokens: 40,
  cache_creation_input_tokens: 30,
  cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
  output_tokens: 50,
  server_tool_use: { web_search_requests: 3, web_fetch_requests: 0 },
};
export const messagesRecord = {
  inputTokens: 130,
  outputTokens: 50,
  cachedTokens: 40,
  cacheWrittenTokens: 30,
  cacheWrittenHourTokens: 20,
  searches: 3,
};
const messagesTokens = 1000 * (60 + 40 * 3 + 10 * 5 + 20 * 7 + 50 * 2);
export const messagesNanos = messagesTokens + 3 * search;
export const messagesAnswer = (more: object) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { ...messagesUsage, ...more },
});
export const messagesStream = (more: object) => [
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
export const googleRecord = {
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
export const googleTokens = 1000 * (70 + 20 * 17 + 10 * 29 + 5 * 11 + 5 * 19 + 10 * 2 + 30 * 23 + 5 * 31);
export const googleAnswer = (usage: object = {}) => ({
  candidates: [
    {
      content: { role: 'model', parts: [{ text: 'hi' }] },
      finishReason: 'STOP',
      groundingMetadata: { webSearchQueries: ['b'], imageSearchQueries: ['a', 'b'], groundingChunks: [] },
    },
  ],
  usageMetadata: { ...googleUsage, ...usage },
});
export const googleStream = (usage: object = {}) => [
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
