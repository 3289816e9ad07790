import type { JsonObject } from '../../../src/wire/json.js';
import { argumentsIn, at, listAt, numberAt, objectAt, present, textAt } from '../../support/json.js';
import { assembleChat } from './chat-stream.js';
import { type Answer, type Ask, type Client, failed, type Image, readOpenaiError } from './client.js';

/** The chat protocol. */
export const chatClient: Client = {
  protocol: 'chat',
  rateLimited: 'rate_limit_error',
  user: (text, image) => [
    { role: 'user', content: image === undefined ? text : [textPart(text), imagePart(image)] },
  ],
  results: (results) =>
    results.map(({ call, output }) => ({ role: 'tool', tool_call_id: call.id, content: output })),
  request: (model, ask) => ({
    path: '/v1/chat/completions',
    headers: {},
    body: requestBody(model, ask),
  }),
  readWhole,
  readStream(text) {
    const { completion, error } = assembleChat(text);
    const answer = readWhole(completion);
    if (error === null) return answer;
    return {
      ...answer,
      ...failed({ ...readOpenaiError(error), status: 200, retryAfter: null }),
      text: answer.text,
    };
  },
  readError: readOpenaiError,
};

function requestBody(model: string, ask: Ask): JsonObject {
  const system = ask.system === undefined ? [] : [{ role: 'system', content: ask.system }];
  return present({
    model,
    messages: [...system, ...ask.turns],
    stream: ask.stream ? true : undefined,
    stream_options: ask.stream ? { include_usage: true } : undefined,
    web_search_options: ask.searches === true ? {} : undefined,
    tools: ask.tools?.map((tool) => ({ type: 'function', function: tool })),
    stop: ask.stop,
    max_completion_tokens: ask.maxTokens,
    response_format:
      ask.schema === undefined
        ? undefined
        : { type: 'json_schema', json_schema: { name: 'answer', schema: ask.schema, strict: true } },
    reasoning_effort: ask.thinks === undefined ? undefined : 'medium',
    n: ask.candidates,
    logprobs: ask.logprobs,
  });
}

const textPart = (text: string): JsonObject => ({ type: 'text', text });
const imagePart = (image: Image): JsonObject => ({
  type: 'image_url',
  image_url: { url: 'url' in image ? image.url : `data:${image.mediaType};base64,${image.data}` },
});

const finishes: Readonly<Record<string, Answer['finish']>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tools',
  content_filter: 'filtered',
};

function readWhole(body: unknown): Answer {
  const message = objectAt(body, 'choices', 0, 'message');
  const usage = at(body, 'usage');
  return {
    text: textAt(message, 'content'),
    refusal: textAt(message, 'refusal'),
    reasoning: textAt(message, 'reasoning_content'),
    calls: listAt(message, 'tool_calls').map((call) => ({
      id: textAt(call, 'id'),
      name: textAt(call, 'function', 'name'),
      args: argumentsIn(textAt(call, 'function', 'arguments')),
    })),
    finish: finishes[textAt(body, 'choices', 0, 'finish_reason')] ?? 'other',
    stopSequence: null,
    more: listAt(body, 'choices')
      .slice(1)
      .map((choice) => textAt(choice, 'message', 'content')),
    logprobs: listAt(body, 'choices', 0, 'logprobs', 'content').length,
    usage:
      usage === undefined
        ? null
        : {
            input: numberAt(usage, 'prompt_tokens'),
            output: numberAt(usage, 'completion_tokens'),
            reasoning: numberAt(usage, 'completion_tokens_details', 'reasoning_tokens'),
          },
    turns: [message],
    error: null,
  };
}
