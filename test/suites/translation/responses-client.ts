import type { JsonObject } from '../../../src/wire/json.js';
import { argumentsIn, at, listAt, numberAt, present, textAt } from '../../support/json.js';
import { type Answer, type Ask, type Client, failed, type Image, readOpenaiError } from './client.js';
import { assembleResponse } from './responses-stream.js';

/** The responses protocol. */
export const responsesClient: Client = {
  protocol: 'responses',
  rateLimited: 'rate_limit_error',
  user: (text, image) => [
    {
      role: 'user',
      content: [{ type: 'input_text', text }, ...(image === undefined ? [] : [imagePart(image)])],
    },
  ],
  results: (results) =>
    results.map(({ call, output }) => ({ type: 'function_call_output', call_id: call.id, output })),
  request: (model, ask) => ({ path: '/v1/responses', headers: {}, body: requestBody(model, ask) }),
  readWhole,
  readStream(text) {
    const { response, error, text: written } = assembleResponse(text);
    if (error === null) return readWhole(response);
    return { ...failed({ ...readOpenaiError(error), status: 200, retryAfter: null }), text: written };
  },
  readError: readOpenaiError,
};

function requestBody(model: string, ask: Ask): JsonObject {
  const thinks = ask.thinks !== undefined;
  const include = [
    ...(thinks ? ['reasoning.encrypted_content'] : []),
    ...(ask.logprobs === true ? ['message.output_text.logprobs'] : []),
  ];
  return present({
    model,
    input: ask.turns,
    store: false,
    stream: ask.stream ? true : undefined,
    instructions: ask.system,
    tools:
      ask.searches === true
        ? [{ type: 'web_search' }]
        : ask.tools?.map((tool) => ({ type: 'function', ...tool, strict: false })),
    max_output_tokens: ask.maxTokens,
    text:
      ask.schema === undefined
        ? undefined
        : { format: { type: 'json_schema', name: 'answer', schema: ask.schema, strict: true } },
    reasoning: thinks
      ? { effort: 'medium', ...(ask.thinks === 'shown' ? { summary: 'auto' } : {}) }
      : undefined,
    include: include.length === 0 ? undefined : include,
  });
}

function imagePart(image: Image): JsonObject {
  return {
    type: 'input_image',
    detail: 'auto',
    image_url: 'url' in image ? image.url : `data:${image.mediaType};base64,${image.data}`,
  };
}

function readWhole(body: unknown): Answer {
  const output = listAt(body, 'output');
  const of = (type: string): readonly JsonObject[] => output.filter((item) => item.type === type);
  const calls = of('function_call').map((item) => ({
    id: textAt(item, 'call_id'),
    name: textAt(item, 'name'),
    args: argumentsIn(textAt(item, 'arguments')),
  }));
  const usage = at(body, 'usage');
  const parts = of('message').flatMap((item) => listAt(item, 'content'));
  return {
    text: joined(parts),
    refusal: parts.map((part) => textAt(part, 'refusal')).join(''),
    reasoning: joined(of('reasoning').flatMap((item) => listAt(item, 'summary'))),
    calls,
    finish: finishOf(body, calls.length > 0),
    stopSequence: null,
    more: [],
    logprobs: parts.flatMap((part) => listAt(part, 'logprobs')).length,
    usage:
      usage === undefined
        ? null
        : {
            input: numberAt(usage, 'input_tokens'),
            output: numberAt(usage, 'output_tokens'),
            reasoning: numberAt(usage, 'output_tokens_details', 'reasoning_tokens'),
          },
    turns: output,
    error: null,
  };
}

function joined(parts: readonly JsonObject[]): string {
  return parts.map((part) => textAt(part, 'text')).join('');
}

function finishOf(body: unknown, hasCalls: boolean): Answer['finish'] {
  const status = textAt(body, 'status');
  if (status === 'completed') return hasCalls ? 'tools' : 'stop';
  const reason = textAt(body, 'incomplete_details', 'reason');
  if (reason === 'content_filter') return 'filtered';
  return reason === 'max_output_tokens' ? 'length' : 'other';
}
