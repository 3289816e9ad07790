import { test } from 'tap';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import {
  askChat,
  askGoogle,
  askMessages,
  askResponses,
  callPriced,
  type PricedCall,
  streamed,
} from '../../support/billing/priced-calls.js';
import { testKey } from '../../support/gateway.js';
import { startLedger } from '../../support/ledger.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';
import {
  askGoogleStream,
  chatAnswer,
  chatNanos,
  chatRecord,
  chatStream,
  data,
  googleAnswer,
  googleRecord,
  googleStream,
  googleTokens,
  messagesAnswer,
  messagesNanos,
  messagesRecord,
  messagesStream,
  plantedTier,
  plantedUsage,
  price,
  response,
  responseStream,
  responsesNanos,
  responsesRecord,
  search,
} from './priced-answers.js';

interface Case extends PricedCall {
  /** A JSON body, or the events of a stream. */
  readonly answer: object | readonly string[];
  readonly record: Partial<LedgerRecord>;
  /** What is charged, in nano-dollars. */
  readonly nanos: number;
}

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
    name: 'chat of the ultrafast tier',
    kind: 'chat',
    ...askChat,
    answer: { ...chatAnswer, service_tier: 'ultrafast' },
    record: { ...chatRecord, tier: 'ultrafast' },
    nanos: chatNanos * 8,
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
