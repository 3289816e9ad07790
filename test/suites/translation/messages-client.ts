import type { JsonObject } from '../../../src/wire/json.js';
import { at, listAt, numberAt, present, textAt } from '../../support/json.js';
import { type Answer, type Ask, type Client, failed, type Image } from './client.js';
import { assembleMessage } from './messages-stream.js';

/** The messages protocol. */
export const messagesClient: Client = {
  protocol: 'messages',
  rateLimited: 'rate_limit_error',
  user: (text, image) => [
    { role: 'user', content: image === undefined ? text : [imageBlock(image), { type: 'text', text }] },
  ],
  results: (results) => [
    {
      role: 'user',
      content: results.map(({ call, output }) => ({
        type: 'tool_result',
        tool_use_id: call.id,
        content: output,
      })),
    },
  ],
  request: (model, ask) => ({
    path: '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: requestBody(model, ask),
  }),
  readWhole,
  readStream(text) {
    const { message, error } = assembleMessage(text);
    const answer = readWhole(message);
    if (error === null) return answer;
    return {
      ...answer,
      ...failed({ ...readError(error), status: 200, retryAfter: null }),
      text: answer.text,
    };
  },
  readError,
};

function requestBody(model: string, ask: Ask): JsonObject {
  return present({
    model,
    max_tokens: ask.maxTokens ?? 20_000,
    messages: ask.turns,
    stream: ask.stream ? true : undefined,
    system: ask.system,
    tools:
      ask.searches === true
        ? [{ type: 'web_search_20250305', name: 'web_search' }]
        : ask.tools?.map((tool) => ({
            name: tool.name,
            description: tool.description,
            input_schema: tool.parameters,
          })),
    stop_sequences: ask.stop,
    output_config:
      ask.schema === undefined ? undefined : { format: { type: 'json_schema', schema: ask.schema } },
    thinking:
      ask.thinks === undefined
        ? undefined
        : {
            type: 'enabled',
            budget_tokens: 8192,
            display: ask.thinks === 'shown' ? 'summarized' : 'omitted',
          },
    top_k: ask.topK,
  });
}

function imageBlock(image: Image): JsonObject {
  return {
    type: 'image',
    source:
      'url' in image
        ? { type: 'url', url: image.url }
        : { type: 'base64', media_type: image.mediaType, data: image.data },
  };
}

const finishes: Readonly<Record<string, Answer['finish']>> = {
  end_turn: 'stop',
  stop_sequence: 'stopSequence',
  max_tokens: 'length',
  tool_use: 'tools',
  refusal: 'filtered',
};

function readWhole(body: unknown): Answer {
  const blocks = listAt(body, 'content');
  const joined = (type: string): string =>
    blocks
      .filter((block) => block.type === type)
      .map((block) => textAt(block, type))
      .join('');
  const stopSequence = at(body, 'stop_sequence');
  const usage = at(body, 'usage');
  return {
    text: joined('text'),
    refusal: '',
    reasoning: joined('thinking'),
    calls: blocks
      .filter((block) => block.type === 'tool_use')
      .map((block) => ({ id: textAt(block, 'id'), name: textAt(block, 'name'), args: block.input })),
    finish: finishes[textAt(body, 'stop_reason')] ?? 'other',
    stopSequence: typeof stopSequence === 'string' ? stopSequence : null,
    more: [],
    logprobs: 0,
    usage:
      usage === undefined
        ? null
        : {
            input:
              numberAt(usage, 'input_tokens') +
              numberAt(usage, 'cache_read_input_tokens') +
              numberAt(usage, 'cache_creation_input_tokens'),
            output: numberAt(usage, 'output_tokens'),
            reasoning: numberAt(usage, 'output_tokens_details', 'thinking_tokens'),
          },
    turns: [{ role: 'assistant', content: blocks }],
    error: null,
  };
}

function readError(body: unknown) {
  return { type: textAt(body, 'error', 'type'), message: textAt(body, 'error', 'message'), param: null };
}
