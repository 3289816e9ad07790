import type { TextProtocolName } from '../../../src/conversation/request.js';
import type { SimulatorRequest } from '../../../src/simulator/http/reply.js';
import { at, listAt, objectAt, textAt } from '../../support/json.js';
import type { Image } from './client.js';

/** The request that an upstream received, independent of its protocol. */
export interface Received {
  readonly wire: TextProtocolName;
  readonly model: string;
  readonly stream: boolean;
  readonly system: string;
  readonly tools: readonly string[];
  readonly stop: unknown;
  readonly maxTokens: unknown;
  readonly schema: unknown;
  readonly topK: unknown;
  /** Web search was requested. */
  readonly searches: boolean;
  /** An effort, or the corresponding budget. */
  readonly thinking: unknown;
  readonly images: readonly Image[];
  readonly results: readonly string[];
  /** Signatures of reasoning in the conversation, or the reasoning itself if its upstream signs none. */
  readonly signatures: readonly string[];
}

/** Reads the last request to the simulator. */
export function readReceived(request: SimulatorRequest | null): Received {
  const body: unknown = JSON.parse(request?.body.toString('utf8') ?? 'null');
  const target = request?.target ?? '';
  if (target === '/v1/chat/completions') return readChat(body);
  if (target === '/v1/responses') return readResponses(body);
  if (target === '/v1/messages') return readMessages(body);
  const named = /^\/v1beta\/models\/([^:?]+):(generateContent|streamGenerateContent\?alt=sse)$/.exec(target);
  if (named === null) throw new Error(`the simulator knows no ${target}`);
  return readGenerateContent(body, named[1] ?? '', named[2] !== 'generateContent');
}

function readChat(body: unknown): Received {
  const messages = listAt(body, 'messages');
  const [first] = messages;
  return {
    wire: 'chat',
    model: textAt(body, 'model'),
    stream: at(body, 'stream') === true,
    system: first?.role === 'system' ? textAt(first, 'content') : '',
    tools: listAt(body, 'tools').map((tool) => textAt(tool, 'function', 'name')),
    stop: at(body, 'stop'),
    maxTokens: at(body, 'max_completion_tokens'),
    schema: at(body, 'response_format', 'json_schema', 'schema'),
    topK: at(body, 'top_k'),
    searches: at(body, 'web_search_options') !== undefined,
    thinking: at(body, 'reasoning_effort'),
    images: messages
      .flatMap((message) => listAt(message, 'content'))
      .flatMap((part) => imageOf(textAt(part, 'image_url', 'url'))),
    results: messages.filter(({ role }) => role === 'tool').map((message) => textAt(message, 'content')),
    // Nothing is signed here: the reasoning itself comes back.
    signatures: messages.flatMap((message) => textOf(message.reasoning_content)),
  };
}

function readResponses(body: unknown): Received {
  const items = listAt(body, 'input');
  return {
    wire: 'responses',
    model: textAt(body, 'model'),
    stream: at(body, 'stream') === true,
    system: textAt(body, 'instructions'),
    tools: listAt(body, 'tools').map((tool) => textAt(tool, 'name')),
    stop: undefined,
    maxTokens: at(body, 'max_output_tokens'),
    schema: at(body, 'text', 'format', 'schema'),
    topK: at(body, 'top_k'),
    searches: listAt(body, 'tools').some(({ type }) => type === 'web_search'),
    thinking: at(body, 'reasoning', 'effort'),
    images: items
      .flatMap((item) => listAt(item, 'content'))
      .flatMap((part) => imageOf(textAt(part, 'image_url'))),
    results: items
      .filter(({ type }) => type === 'function_call_output')
      .map((item) => textAt(item, 'output')),
    signatures: items.flatMap((item) => textOf(item.encrypted_content)),
  };
}

function readMessages(body: unknown): Received {
  const blocks = listAt(body, 'messages').flatMap((message) => listAt(message, 'content'));
  return {
    wire: 'messages',
    model: textAt(body, 'model'),
    stream: at(body, 'stream') === true,
    system: textAt(body, 'system') || textAt(body, 'system', 0, 'text'),
    tools: listAt(body, 'tools').map((tool) => textAt(tool, 'name')),
    stop: at(body, 'stop_sequences'),
    maxTokens: at(body, 'max_tokens'),
    schema: at(body, 'output_config', 'format', 'schema'),
    topK: at(body, 'top_k'),
    searches: listAt(body, 'tools').some(({ type }) => type === 'web_search_20250305'),
    thinking: at(body, 'thinking', 'budget_tokens'),
    images: blocks
      .filter(({ type }) => type === 'image')
      .map(({ source }) =>
        textAt(source, 'type') === 'url'
          ? { mediaType: '', url: textAt(source, 'url') }
          : { mediaType: textAt(source, 'media_type'), data: textAt(source, 'data') },
      ),
    results: blocks
      .filter(({ type }) => type === 'tool_result')
      .map((block) => textAt(block, 'content') || textAt(block, 'content', 0, 'text')),
    signatures: blocks.flatMap((block) => [...textOf(block.signature), ...textOf(block.data)]),
  };
}

function readGenerateContent(body: unknown, model: string, stream: boolean): Received {
  const parts = listAt(body, 'contents').flatMap((content) => listAt(content, 'parts'));
  const config = objectAt(body, 'generationConfig');
  return {
    wire: 'generateContent',
    model,
    stream,
    system: textAt(body, 'systemInstruction', 'parts', 0, 'text'),
    tools: listAt(body, 'tools', 0, 'functionDeclarations').map((tool) => textAt(tool, 'name')),
    stop: config.stopSequences,
    maxTokens: config.maxOutputTokens,
    schema: config.responseJsonSchema,
    topK: config.topK,
    searches: listAt(body, 'tools').some(({ googleSearch }) => googleSearch !== undefined),
    thinking: at(config, 'thinkingConfig', 'thinkingBudget'),
    images: parts.flatMap(({ inlineData, fileData }): readonly Image[] => {
      if (inlineData !== undefined)
        return [{ mediaType: textAt(inlineData, 'mimeType'), data: textAt(inlineData, 'data') }];
      return fileData === undefined
        ? []
        : [{ mediaType: textAt(fileData, 'mimeType'), url: textAt(fileData, 'fileUri') }];
    }),
    results: parts.flatMap((part) => textOf(at(part, 'functionResponse', 'response', 'result'))),
    signatures: parts.flatMap((part) => textOf(part.thoughtSignature)),
  };
}

function textOf(value: unknown): readonly string[] {
  return typeof value === 'string' ? [value] : [];
}

function imageOf(url: string): readonly Image[] {
  if (url === '') return [];
  const [, mediaType, data] = /^data:([^;]+);base64,(.*)$/.exec(url) ?? [];
  return [mediaType === undefined || data === undefined ? { mediaType: '', url } : { mediaType, data }];
}
