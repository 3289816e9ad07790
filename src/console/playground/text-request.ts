import { callsAnsweredBy, type ToolCall, type Turn } from './conversation.js';
import { type GatewayRequest, generateContentPath, post } from './gateway-request.js';
import { isObject, type Json, type JsonObject, merged, parseJson } from './json.js';

/** The gateway's text protocols. The page shares no types with the gateway: a test compares the two lists. */
export type TextProtocol = 'chat' | 'responses' | 'messages' | 'generateContent';

export interface TextSettings {
  readonly model: string;
  /** Empty for none. */
  readonly system: string;
  /** Null leaves it to the upstream, unless the protocol requires it. */
  readonly maxTokens: number | null;
  readonly temperature: number | null;
  readonly stream: boolean;
  /** Merged over the body: any further members of the protocol. */
  readonly extra: JsonObject;
}

/** The version of the messages protocol that its SDKs send. */
const messagesVersion = '2023-06-01';
/** The messages protocol requires a bound. */
const messagesMaxTokens = 1024;

/**
 * The request that continues a conversation.
 * @param turns turns in order; the last one is the user's
 */
export function textRequest(
  protocol: TextProtocol,
  settings: TextSettings,
  turns: readonly Turn[],
): GatewayRequest {
  return writers[protocol](settings, turns);
}

type Writer = (settings: TextSettings, turns: readonly Turn[]) => GatewayRequest;

const writers: Readonly<Record<TextProtocol, Writer>> = {
  chat: chatRequest,
  responses: responsesRequest,
  messages: messagesRequest,
  generateContent: generateContentRequest,
};

function chatRequest(settings: TextSettings, turns: readonly Turn[]): GatewayRequest {
  const system: Json[] = settings.system === '' ? [] : [{ role: 'system', content: settings.system }];
  const messages = turns.flatMap((turn, index): Json[] => {
    if (turn.role === 'assistant') {
      if (turn.calls.length === 0) return [{ role: 'assistant', content: turn.text }];
      const calls = turn.calls.map(({ id, name, arguments: given }) => ({
        id,
        type: 'function',
        function: { name, arguments: given },
      }));
      return [{ role: 'assistant', content: turn.text === '' ? null : turn.text, tool_calls: calls }];
    }
    const answered = callsAnsweredBy(turns, index);
    if (answered.length === 0) return [{ role: 'user', content: turn.text }];
    return answered.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: turn.text }));
  });
  const body = {
    model: settings.model,
    messages: [...system, ...messages],
    ...given('max_completion_tokens', settings.maxTokens),
    ...given('temperature', settings.temperature),
    // Otherwise the stream does not report tokens.
    ...(settings.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
  return post('/v1/chat/completions', merged(body, settings.extra));
}

function responsesRequest(settings: TextSettings, turns: readonly Turn[]): GatewayRequest {
  const items = turns.flatMap((turn, index): Json[] => {
    if (turn.role === 'assistant') {
      const calls = turn.calls.map(({ id, name, arguments: given }) => ({
        type: 'function_call',
        call_id: id,
        name,
        arguments: given,
      }));
      return turn.text === '' ? calls : [{ role: 'assistant', content: turn.text }, ...calls];
    }
    const answered = callsAnsweredBy(turns, index);
    if (answered.length === 0) return [{ role: 'user', content: turn.text }];
    return answered.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: turn.text }));
  });
  const only = turns.length === 1 ? turns[0]?.text : undefined;
  const body = {
    model: settings.model,
    ...(settings.system === '' ? {} : { instructions: settings.system }),
    input: only ?? items,
    ...given('max_output_tokens', settings.maxTokens),
    ...given('temperature', settings.temperature),
    ...(settings.stream ? { stream: true } : {}),
  };
  return post('/v1/responses', merged(body, settings.extra));
}

function messagesRequest(settings: TextSettings, turns: readonly Turn[]): GatewayRequest {
  const messages = turns.map((turn, index): Json => {
    if (turn.role === 'assistant') {
      if (turn.calls.length === 0) return { role: 'assistant', content: turn.text };
      const text: Json[] = turn.text === '' ? [] : [{ type: 'text', text: turn.text }];
      const calls = turn.calls.map((call) => ({
        type: 'tool_use',
        id: call.id,
        name: call.name,
        input: argumentsOf(call),
      }));
      return { role: 'assistant', content: [...text, ...calls] };
    }
    const answered = callsAnsweredBy(turns, index);
    if (answered.length === 0) return { role: 'user', content: turn.text };
    const results = answered.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: turn.text }));
    return { role: 'user', content: results };
  });
  const body = {
    model: settings.model,
    max_tokens: settings.maxTokens ?? messagesMaxTokens,
    ...(settings.system === '' ? {} : { system: settings.system }),
    messages,
    ...given('temperature', settings.temperature),
    ...(settings.stream ? { stream: true } : {}),
  };
  return post('/v1/messages', merged(body, settings.extra), { 'anthropic-version': messagesVersion });
}

function generateContentRequest(settings: TextSettings, turns: readonly Turn[]): GatewayRequest {
  const contents = turns.map((turn, index): Json => {
    if (turn.role === 'assistant') {
      const text: Json[] = turn.text === '' ? [] : [{ text: turn.text }];
      const calls = turn.calls.map((call) => ({
        functionCall: { ...named(call), args: argumentsOf(call) },
      }));
      return { role: 'model', parts: [...text, ...calls] };
    }
    const answered = callsAnsweredBy(turns, index);
    if (answered.length === 0) return { role: 'user', parts: [{ text: turn.text }] };
    const results = answered.map((call) => ({
      functionResponse: { ...named(call), response: { result: turn.text } },
    }));
    return { role: 'user', parts: results };
  });
  const config = {
    ...given('maxOutputTokens', settings.maxTokens),
    ...given('temperature', settings.temperature),
  };
  const body = {
    ...(settings.system === '' ? {} : { systemInstruction: { parts: [{ text: settings.system }] } }),
    contents,
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
  };
  const method = settings.stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return post(generateContentPath(settings.model, method), merged(body, settings.extra));
}

function given(name: string, value: number | null): JsonObject {
  return value === null ? {} : { [name]: value };
}

/** Calls of this protocol may lack an id. */
function named({ id, name }: ToolCall): JsonObject {
  return id === '' ? { name } : { id, name };
}

/** The arguments as an object; empty if a broken stream has cut them. */
function argumentsOf(call: ToolCall): JsonObject {
  const value = parseJson(call.arguments);
  return isObject(value) ? (value as JsonObject) : {};
}
