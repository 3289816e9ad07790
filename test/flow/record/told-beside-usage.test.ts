import { test } from 'tap';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import { startLedger } from '../../support/ledger.js';
import { postJson } from '../../support/post-json.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

/*
 * What vendors bill and tell at another place than in the numbers of a usage, and what clients can make stand near them.
 */

interface Case {
  readonly name: string;
  /** Of the upstream. */
  readonly kind: 'chat' | 'messages' | 'responses';
  /** A JSON body, or the events of a stream. */
  readonly answer: object | readonly string[];
  readonly record: Partial<LedgerRecord>;
}

const event = (value: { readonly type: string; readonly [member: string]: unknown }): string =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;

const ofMessages = { input_tokens: 23, output_tokens: 10, cache_read_input_tokens: 5 };
/** As the vendor's `BetaUsage` has it: what made the conversation shorter is in no other number. */
const iterations = [
  {
    type: 'compaction',
    input_tokens: 1800,
    output_tokens: 35,
    cache_read_input_tokens: 70,
    cache_creation_input_tokens: 6,
    cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 4 },
  },
  { type: 'message', ...ofMessages },
  { type: 'advisor_message', model: 'n', input_tokens: 100, output_tokens: 200 },
  { type: 'fallback_message', input_tokens: 1, output_tokens: 1 },
];
const compacted: Partial<LedgerRecord> = {
  inputTokens: 23 + 5 + 1800 + 70 + 6 + 100,
  outputTokens: 10 + 35 + 200,
  cachedTokens: 75,
  cacheWrittenTokens: 6,
  cacheWrittenHourTokens: 4,
  tier: 'standard',
  tokensKnown: 'exact',
};
/** A client may have its model call a tool with any arguments. */
const called = { type: 'tool_use', id: 't', name: 'f', input: { service_tier: 'flex', speed: 'fast' } };
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  stop_reason: 'end_turn',
  stop_sequence: null,
};
const messageStream = (usage: object, atStart: object = ofMessages): readonly string[] => [
  event({ type: 'message_start', message: { ...message, content: [], usage: atStart } }),
  event({ type: 'content_block_start', index: 0, content_block: called }),
  event({ type: 'content_block_stop', index: 0 }),
  event({ type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage }),
  event({ type: 'message_stop' }),
];

/** Its total alone says that the reasoning is not among the output. */
const xai = {
  prompt_tokens: 32,
  completion_tokens: 9,
  total_tokens: 135,
  completion_tokens_details: { reasoning_tokens: 94 },
};
const reasoned: Partial<LedgerRecord> = { inputTokens: 32, outputTokens: 103, reasoningTokens: 94 };
const within = { ...xai, completion_tokens: 103 };
const completion = (usage: object) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage,
});
const chatStream = (usage: object, tier?: string): readonly string[] => [
  `data: ${JSON.stringify({ service_tier: tier, choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: 'stop' }] })}\n\n`,
  `data: ${JSON.stringify({ choices: [], usage })}\n\n`,
  'data: [DONE]\n\n',
];

/** As OpenAI has it: images are made by another model, whose tokens are in no usage. */
const madeImages = {
  image_gen: {
    input_tokens: 50,
    input_tokens_details: { image_tokens: 40, text_tokens: 10 },
    output_tokens: 4160,
    output_tokens_details: { image_tokens: 4100, text_tokens: 60 },
    total_tokens: 4210,
  },
  web_search: { num_requests: 0 },
};
const noImages = {
  image_gen: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
  web_search: { num_requests: 0 },
};
const drawn: Partial<LedgerRecord> = {
  inputTokens: 150,
  outputTokens: 4180,
  imageInputTokens: 40,
  imageOutputTokens: 4100,
  tokensKnown: 'exact',
};
/** @param bytes of the image */
const response = (toolUsage: object, bytes: number, status = 'completed') => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status,
  error: null,
  model: 'm',
  output: [{ id: 'ig_1', type: 'image_generation_call', status, result: 'A'.repeat(bytes) }],
  service_tier: 'default',
  tool_usage: toolUsage,
  tools: [{ type: 'image_generation', description: 'x'.repeat(5000), tool_usage: noImages }],
  usage: { input_tokens: 100, output_tokens: 20, total_tokens: 120 },
  metadata: { tool_usage: 'none' },
});
const responseStream = (toolUsage: object, bytes: number): readonly string[] => [
  event({ type: 'response.created', response: response(noImages, 1, 'in_progress') }),
  event({ type: 'response.completed', response: response(toolUsage, bytes) }),
];

const cases: Case[] = [
  {
    name: 'iterations of messages',
    kind: 'messages',
    answer: { ...message, content: [], usage: { ...ofMessages, iterations } },
    record: compacted,
  },
  {
    name: 'iterations before the numbers of the usage',
    kind: 'messages',
    answer: { ...message, content: [], usage: { iterations, ...ofMessages } },
    record: compacted,
  },
  {
    name: 'iterations of a stream of messages',
    kind: 'messages',
    answer: messageStream({ ...ofMessages, iterations }),
    record: compacted,
  },
  {
    name: 'iterations that both the first and the last event of a stream have',
    kind: 'messages',
    answer: messageStream({ output_tokens: 10, iterations }, { ...ofMessages, output_tokens: 1, iterations }),
    record: compacted,
  },
  {
    name: 'iterations that the first event of a stream has alone',
    kind: 'messages',
    answer: messageStream({ output_tokens: 10 }, { ...ofMessages, output_tokens: 1, iterations }),
    record: compacted,
  },
  {
    name: 'iterations that are none',
    kind: 'messages',
    answer: { ...message, content: [], usage: { ...ofMessages, iterations: null } },
    record: { inputTokens: 28, outputTokens: 10, cachedTokens: 5 },
  },
  {
    name: 'a tier among the arguments of a call, behind the usage',
    kind: 'messages',
    answer: { ...message, usage: ofMessages, content: [called] },
    record: { inputTokens: 28, outputTokens: 10, tier: 'standard' },
  },
  {
    name: 'a tier among the arguments of a call in a stream',
    kind: 'messages',
    answer: messageStream(ofMessages),
    record: { inputTokens: 28, outputTokens: 10, tier: 'standard' },
  },
  { name: 'reasoning beside the output', kind: 'chat', answer: completion(xai), record: reasoned },
  { name: 'the same in a stream', kind: 'chat', answer: chatStream(xai), record: reasoned },
  { name: 'reasoning in the output', kind: 'chat', answer: completion(within), record: reasoned },
  {
    name: 'a tier that another event of a stream names than the usage',
    kind: 'chat',
    answer: chatStream(within, 'priority'),
    record: { ...reasoned, tier: 'priority' },
  },
];

for (const bytes of [10, 3_000_000])
  cases.push(
    {
      name: `images of a response, ${bytes} bytes`,
      kind: 'responses',
      answer: response(madeImages, bytes),
      record: drawn,
    },
    {
      name: `images of a response that is streamed, ${bytes} bytes`,
      kind: 'responses',
      answer: responseStream(madeImages, bytes),
      record: drawn,
    },
  );
cases.push({
  name: 'a response without images',
  kind: 'responses',
  answer: responseStream(noImages, 10),
  record: { inputTokens: 100, outputTokens: 20, imageOutputTokens: 0 },
});

const hello = [{ role: 'user', content: 'hi' }];

function bytesOf(answer: Case['answer']): string {
  if (!Array.isArray(answer)) return jsonAnswer(200, JSON.stringify(answer));
  return streamHead + (answer as readonly string[]).map(chunk).join('') + lastChunk;
}

test('what vendors bill beside the numbers of a usage is charged, and nothing else is taken for it', async (t) => {
  const { upstream, gateway, lines } = await startLedger(t, (name, ofTarget) => ({
    protocols: ['chat', 'responses', 'messages'],
    targets: [{ upstream: name, ...ofTarget }],
  }));
  const both = ['/v1/chat/completions', '/v1/messages'];
  const asked: { readonly id: string | null; readonly of: Case; readonly path: string }[] = [];
  for (const each of cases) {
    for (const path of each.kind === 'responses' ? ['/v1/responses'] : both) {
      upstream.answer = bytesOf(each.answer);
      const answered = await postJson(
        gateway.url + path,
        {
          model: each.kind,
          max_tokens: 9,
          ...(each.kind === 'responses' ? { input: 'hi' } : { messages: hello }),
          stream: Array.isArray(each.answer),
        },
        { 'anthropic-version': '2023-06-01' },
      );
      await answered.text();
      t.equal(answered.status, 200, each.name);
      asked.push({ id: answered.headers.get('x-request-id'), of: each, path });
    }
  }
  const records = await lines(asked.length);
  for (const { id, of, path } of asked)
    t.match(
      records.find(({ requestId }) => requestId === id),
      of.record,
      `${of.name}, ${path}`,
    );
});
