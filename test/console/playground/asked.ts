import { demoKeys } from '../../../src/config/demo.js';
import { addWhole, readStream } from '../../../src/console/playground/answer-readers.js';
import type { GatewayRequest } from '../../../src/console/playground/gateway-request.js';
import type { JsonObject } from '../../../src/console/playground/json.js';
import { emptyAnswer, type TextAnswer } from '../../../src/console/playground/text-answer.js';
import type { TextProtocol, TextSettings } from '../../../src/console/playground/text-request.js';

/** Settings of the demo's text model, with what a test is about. */
export function settingsWith(settings: Partial<TextSettings>): TextSettings {
  return {
    model: 'sim-text',
    system: '',
    maxTokens: null,
    temperature: null,
    stream: false,
    extra: {},
    ...settings,
  };
}

/** A tool as a protocol has it, and the wish that it is called. */
export function forcedTool(protocol: TextProtocol): JsonObject {
  const name = 'get_weather';
  const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  switch (protocol) {
    case 'chat':
      return {
        tools: [{ type: 'function', function: { name, parameters: schema } }],
        tool_choice: 'required',
      };
    case 'responses':
      return {
        tools: [{ type: 'function', name, parameters: schema, strict: false }],
        tool_choice: 'required',
      };
    case 'messages':
      return { tools: [{ name, input_schema: schema }], tool_choice: { type: 'any' } };
    case 'generateContent':
      return {
        tools: [{ functionDeclarations: [{ name, parametersJsonSchema: schema }] }],
        toolConfig: { functionCallingConfig: { mode: 'ANY' } },
      };
  }
}

/** What makes a model of a protocol show its thinking. */
export function shownThinking(protocol: TextProtocol): JsonObject {
  switch (protocol) {
    case 'chat':
      return { reasoning_effort: 'low' };
    case 'responses':
      return { reasoning: { effort: 'low', summary: 'auto' } };
    case 'messages':
      return { max_tokens: 4096, thinking: { type: 'enabled', budget_tokens: 1024 } };
    case 'generateContent':
      return { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } } };
  }
}

/** Sends a request with the demo's key, as the relay does. */
export function send(url: string, { method, path, headers, body }: GatewayRequest): Promise<Response> {
  return fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${demoKeys.default}`,
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === null ? null : JSON.stringify(body),
  });
}

/** Reads an answer, streamed or whole, as the page does. */
export async function read(protocol: TextProtocol, response: Response): Promise<TextAnswer> {
  const answer = emptyAnswer();
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  if (!isStream || response.body === null) {
    addWhole(protocol, answer, await response.text());
    return answer;
  }
  await readStream(protocol, answer, response.body, () => {});
  return answer;
}
