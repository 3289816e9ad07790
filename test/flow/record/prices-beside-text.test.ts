import { test } from 'tap';
import { textProtocols } from '../../../src/conversation/request.js';
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
import { costOf } from '../../support/cost.js';
import { startGateway } from '../../support/gateway.js';
import { chunk, jsonAnswer, lastChunk, startRawUpstream, streamHead } from '../../support/upstream.js';

/*
 * What vendors bill of embeddings, and what the newest versions of their usage say: each member at its price.
 */

/** USD for a million tokens: a token costs a thousand times as many nano-dollars. */
const price = {
  input: 1,
  output: 2,
  cached: 3,
  cacheWritten: 5,
  cacheWrittenHour: 7,
  audioInput: 11,
  imageInput: 19,
  imageOutput: 23,
  videoInput: 29,
  reasoning: 31,
  perSearch: 0.01,
  geos: { us: 1.1 },
  tiers: { priority: 2 },
};
const search = 10_000_000;

interface Case extends PricedCall {
  /** A JSON body, or the events of a stream. */
  readonly answer: object | readonly object[];
  /** What is charged, in nano-dollars. */
  readonly nanos: number;
}

const askEmbeddings = { path: '/v1/embeddings', body: { input: 'hi' } };
const askGoogleEmbeddings = { path: '/v1beta/models/MODEL:embedContent', body: { content: contents[0] } };

const embedded = { object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [1, 2] }] };
const embeddingsAnswer = {
  ...embedded,
  usage: {
    prompt_tokens: 100,
    total_tokens: 100,
    prompt_tokens_details: {
      cached_tokens: 10,
      text_tokens: 20,
      image_tokens: 40,
      audio_tokens: 25,
      video_tokens: 5,
    },
  },
};
const embeddingsNanos = 1000 * (20 * 1 + 10 * 3 + 40 * 19 + 25 * 11 + 5 * 29);
const modalities = [
  { modality: 'TEXT', tokenCount: 30 },
  { modality: 'IMAGE', tokenCount: 40 },
  { modality: 'AUDIO', tokenCount: 25 },
  { modality: 'VIDEO', tokenCount: 5 },
];
const modalNanos = 1000 * (30 * 1 + 40 * 19 + 25 * 11 + 5 * 29);
const modalUsage = { promptTokenCount: 100, totalTokenCount: 100, promptTokensDetails: modalities };
const googleEmbeddings = { embeddings: [{ values: [1, 2] }], usageMetadata: modalUsage };
const totalAlone = { ...googleEmbeddings, usageMetadata: { ...modalUsage, promptTokenCount: '100' } };

const seen = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: {
    prompt_tokens: 100,
    completion_tokens: 10,
    total_tokens: 110,
    prompt_tokens_details: {
      cached_tokens: 50,
      video_tokens: 60,
      cached_tokens_details: { video_tokens: 50 },
    },
  },
};
const seenNanos = 1000 * (40 * 1 + 50 * 3 + 10 * 29 + 10 * 2);

const generated = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] }, finishReason: 'STOP' }],
  usageMetadata: { ...modalUsage, candidatesTokenCount: 10, totalTokenCount: 110 },
};

const inUs = { input_tokens: 20, output_tokens: 10, inference_geo: 'us' };
const inUsNanos = 1100 * (20 + 10 * 2);
const messagesAnswer = (usage: object) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage,
});
const messagesStream = [
  { type: 'message_start', message: { ...messagesAnswer(inUs), content: [], stop_reason: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 10, server_tool_use: { web_search_requests: 1 } },
  },
  { type: 'message_stop' },
];

const searchItem = {
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'a' },
};
const svgUsage = { model: 'n', input_tokens: 30, output_tokens: 50, reasoning_tokens: 20, total_tokens: 80 };
const svgNanos = 1000 * (30 * 1 + 30 * 2 + 20 * 31);
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'hi', annotations: [] }],
};
const response = (output: readonly object[], more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  error: null,
  model: 'm',
  output,
  service_tier: 'default',
  tools: [],
  usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  metadata: {},
  ...more,
});
const responseNanos = 1000 * (10 + 5 * 2);
const responseStream = (output: readonly object[], more: object = {}) => [
  { type: 'response.created', response: { ...response([]), status: 'in_progress', usage: null } },
  ...output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
  { type: 'response.completed', response: response(output, more) },
];
const searched = [searchItem, { ...searchItem, id: 'ws_2' }, message];
/** One of the two was discounted. */
const oneBilled = { tool_usage: { web_search: { num_requests: 1 } } };
const imageUsage = {
  input_tokens: 50,
  input_tokens_details: { image_tokens: 40, text_tokens: 10 },
  output_tokens: 60,
  output_tokens_details: { image_tokens: 60 },
};
const illustrated = { tool_usage: { image_gen: imageUsage } };
const illustratedNanos = 1000 * (10 + 40 * 19 + 60 * 23);
const drawn = [
  { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: 'AA==', svg_usage: svgUsage },
];
const written = {
  usage: {
    input_tokens: 100,
    input_tokens_details: {
      cached_tokens: 0,
      cache_write_tokens: 60,
      cache_write_tokens_details: { ttl_30m_tokens: 20, ttl_12h_tokens: 40 },
    },
    output_tokens: 5,
    total_tokens: 105,
  },
};
const writtenNanos = 1000 * (40 + 20 * 5 + 40 * 7 + 5 * 2);

/** Of Mistral, by its older names, with the tier in it. */
const ofMistral = {
  prompt_tokens: 100,
  completion_tokens: 10,
  total_tokens: 110,
  num_cached_tokens: 30,
  prompt_token_details: { cached_tokens: 30, audio_tokens: 20 },
  service_tier: 'priority',
};
const mistralNanos = 2000 * (50 * 1 + 30 * 3 + 20 * 11 + 10 * 2);
const choice = { index: 0, finish_reason: 'stop' };
const completion = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ ...choice, message: { role: 'assistant', content: 'hi' } }],
  usage: ofMistral,
};
const chunks = [
  {
    ...completion,
    object: 'chat.completion.chunk',
    choices: [{ ...choice, delta: { role: 'assistant', content: 'hi' } }],
  },
];

const cases: readonly Case[] = [
  { name: 'chat of Mistral', kind: 'chat', ...askChat, answer: completion, nanos: mistralNanos },
  {
    name: 'chat of Mistral, streamed',
    kind: 'chat',
    ...streamed(askChat),
    answer: chunks,
    nanos: mistralNanos,
  },
  {
    name: 'chat of Mistral for a client of messages',
    kind: 'chat',
    ...askMessages,
    answer: completion,
    nanos: mistralNanos,
  },
  {
    name: 'chat of Mistral for a client of messages, streamed',
    kind: 'chat',
    ...streamed(askMessages),
    answer: chunks,
    nanos: mistralNanos,
  },
  { name: 'chat of video of which some is cached', kind: 'chat', ...askChat, answer: seen, nanos: seenNanos },
  {
    name: 'chat of video of which some is cached, for a client of messages',
    kind: 'chat',
    ...askMessages,
    answer: seen,
    nanos: seenNanos,
  },
  {
    name: 'embedContent of which the total alone is a number',
    kind: 'generateContent',
    ...askGoogleEmbeddings,
    answer: totalAlone,
    nanos: modalNanos,
  },
  { name: 'embeddings', kind: 'chat', ...askEmbeddings, answer: embeddingsAnswer, nanos: embeddingsNanos },
  {
    name: 'embeddings for a client of embedContent',
    kind: 'chat',
    ...askGoogleEmbeddings,
    answer: embeddingsAnswer,
    nanos: embeddingsNanos,
  },
  {
    name: 'embedContent',
    kind: 'generateContent',
    ...askGoogleEmbeddings,
    answer: { embedding: { values: [1, 2] }, usageMetadata: modalUsage },
    nanos: modalNanos,
  },
  {
    name: 'embedContent for a client of embeddings',
    kind: 'generateContent',
    ...askEmbeddings,
    answer: googleEmbeddings,
    nanos: modalNanos,
  },
  {
    name: 'video in generateContent',
    kind: 'generateContent',
    ...askGoogle,
    answer: generated,
    nanos: modalNanos + 1000 * 10 * 2,
  },
  {
    name: 'video in generateContent for a client of chat',
    kind: 'generateContent',
    ...askChat,
    answer: generated,
    nanos: modalNanos + 1000 * 10 * 2,
  },
  { name: 'a place', kind: 'messages', ...askMessages, answer: messagesAnswer(inUs), nanos: inUsNanos },
  {
    name: 'a place that has no factor',
    kind: 'messages',
    ...askMessages,
    answer: messagesAnswer({ ...inUs, inference_geo: 'global' }),
    nanos: 1000 * (20 + 10 * 2),
  },
  {
    name: 'a place, with what its compaction has used',
    kind: 'messages',
    ...askMessages,
    answer: messagesAnswer({
      ...inUs,
      iterations: [{ type: 'compaction', input_tokens: 100, output_tokens: 10 }],
    }),
    nanos: 1100 * (120 + 20 * 2),
  },
  {
    name: 'a place that the first event of a stream tells, and a search, which costs the same anywhere',
    kind: 'messages',
    ...streamed(askMessages),
    answer: messagesStream,
    nanos: inUsNanos + search,
  },
  {
    name: 'a place for a client of chat, streamed',
    kind: 'messages',
    ...streamed(askChat),
    answer: messagesStream,
    nanos: inUsNanos + search,
  },
  {
    name: 'a place for a client of responses',
    kind: 'messages',
    ...askResponses,
    answer: messagesAnswer(inUs),
    nanos: inUsNanos,
  },
  {
    name: 'searches that are billed, of those among the items',
    kind: 'responses',
    ...askResponses,
    answer: response(searched, oneBilled),
    nanos: responseNanos + search,
  },
  {
    name: 'searches that are billed, streamed',
    kind: 'responses',
    ...streamed(askResponses),
    answer: responseStream(searched, oneBilled),
    nanos: responseNanos + search,
  },
  {
    name: 'searches that are billed, for a client of chat',
    kind: 'responses',
    ...askChat,
    answer: response(searched, oneBilled),
    nanos: responseNanos + search,
  },
  {
    name: 'searches that are billed, for a client of messages, streamed',
    kind: 'responses',
    ...streamed(askMessages),
    answer: responseStream(searched, oneBilled),
    nanos: responseNanos + search,
  },
  {
    name: 'searches that only the usage of tools has, without a tier',
    kind: 'responses',
    ...askResponses,
    answer: response([message], { ...oneBilled, service_tier: undefined }),
    nanos: responseNanos + search,
  },
  {
    name: 'searches that only the usage of tools has, without a tier, streamed',
    kind: 'responses',
    ...streamed(askResponses),
    answer: responseStream([message], { ...oneBilled, service_tier: undefined }),
    nanos: responseNanos + search,
  },
  {
    name: 'an image that a tool has made, for a client of chat',
    kind: 'responses',
    ...askChat,
    answer: response([message], illustrated),
    nanos: responseNanos + illustratedNanos,
  },
  {
    name: 'an image that a tool has made, for a client of messages, streamed',
    kind: 'responses',
    ...streamed(askMessages),
    answer: responseStream([message], illustrated),
    nanos: responseNanos + illustratedNanos,
  },
  {
    name: 'an image that was written as SVG',
    kind: 'responses',
    ...askResponses,
    answer: response(drawn),
    nanos: responseNanos + svgNanos,
  },
  {
    name: 'an image that was written as SVG, streamed',
    kind: 'responses',
    ...streamed(askResponses),
    answer: responseStream(drawn),
    nanos: responseNanos + svgNanos,
  },
  {
    name: 'an image of the images endpoint that was written as SVG',
    kind: 'chat',
    path: '/v1/images/generations',
    body: { prompt: 'a cat' },
    answer: {
      created: 1,
      data: [{ b64_json: 'AAAA' }],
      usage: { input_tokens: 10, output_tokens: 100, total_tokens: 110 },
      svg_usage: svgUsage,
    },
    nanos: 1000 * (10 + 100 * 23) + svgNanos,
  },
  {
    name: 'what is written to the cache for twelve hours',
    kind: 'responses',
    ...askResponses,
    answer: response([message], written),
    nanos: writtenNanos,
  },
  {
    name: 'what is written to the cache for twelve hours, for a client of messages, streamed',
    kind: 'responses',
    ...streamed(askMessages),
    answer: responseStream([message], written),
    nanos: writtenNanos,
  },
];

function bytesOf(answer: Case['answer']): string {
  if (!Array.isArray(answer)) return jsonAnswer(200, JSON.stringify(answer));
  const events = (answer as readonly { readonly type?: string }[]).map(
    (event) =>
      `${event.type === undefined ? '' : `event: ${event.type}\n`}data: ${JSON.stringify(event)}\n\n`,
  );
  const isChat = events[0]?.startsWith('data: ') === true;
  return streamHead + [...events, ...(isChat ? ['data: [DONE]\n\n'] : [])].map(chunk).join('') + lastChunk;
}

test('each member of a usage that is billed is charged at its price, streamed or not, translated or not', async (t) => {
  const upstream = await startRawUpstream(t, '');
  const root = upstream.url.replace(/\/v1$/, '');
  const model = (upstreamName: string, more: readonly string[], target: object = {}) => ({
    protocols: [...textProtocols, ...more],
    targets: [{ upstream: upstreamName, ...target }],
    price,
  });
  const gateway = await startGateway(t, {
    config: {
      upstreams: {
        chat: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['k'] },
        messages: { kind: 'messages', baseUrl: root, apiKeys: ['k'] },
        generateContent: { kind: 'generateContent', baseUrl: root, apiKeys: ['k'] },
      },
      models: {
        chat: model('chat', ['embeddings', 'images']),
        responses: model('chat', [], { responses: 'only' }),
        messages: model('messages', []),
        generateContent: model('generateContent', ['embeddings']),
      },
    },
  });
  for (const each of cases) {
    const before = costOf(gateway);
    upstream.answer = bytesOf(each.answer);
    await gateway.linesUntil(await callPriced(t, gateway.url, each));
    t.equal(costOf(gateway) - before, each.nanos, each.name);
  }
});
