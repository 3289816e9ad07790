import { type OutputFormat, type Prompt, saidBy, toolTokens } from '../answer/prompt.js';
import { countTokens } from '../answer/tokens.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import type { JsonRequest } from '../http/route.js';
import {
  integer,
  invalid,
  missing,
  modelOf,
  numberWithin,
  refuseUnknown,
  required,
} from '../openai/values.js';
import { type Item, openSeal, readItems } from './items.js';
import { readToolChoice, readTools } from './tools.js';

const tokensPerMedia = 85;

/** The content of a conversation. */
interface Conversation {
  /** The last text of the user. */
  readonly text: string;
  readonly images: number;
  readonly toolResults: readonly string[];
  /** Topic of the compacted parts. */
  readonly recalled: string | undefined;
  readonly tokens: number;
}

/**
 * Checks the order of items: every output follows its call, every call has an output, and reasoning precedes its result.
 * @throws RequestError
 */
function checkHistory(items: readonly Item[]): void {
  const calls = new Map<string, Item>();
  const outputs = new Set<string>();
  for (const [index, item] of items.entries()) {
    const id = String(item.value.call_id);
    switch (item.type) {
      case 'function_call':
      case 'custom_tool_call':
        calls.set(id, item);
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
        if (calls.get(id)?.type !== item.type.replace('_output', '')) {
          const what = item.type.replaceAll('_', ' ');
          throw refuse(`No tool call found for ${what} with call_id ${id}.`);
        }
        outputs.add(id);
        break;
      case 'reasoning':
        checkFollowed(item, items[index + 1]);
    }
  }
  for (const [id, { type }] of calls) {
    if (!outputs.has(id)) {
      const what = type === 'function_call' ? 'function call' : 'custom tool call';
      throw refuse(`No tool output found for ${what} ${id}.`);
    }
  }
}

function refuse(message: string): RequestError {
  return new RequestError(400, message, 'input', null);
}

function checkFollowed({ value }: Item, next: Item | undefined): void {
  const ofUser = next?.type === 'message' && next.value.role !== 'assistant';
  if (next === undefined || ofUser || next.type.endsWith('_output')) {
    throw refuse(
      `Item '${String(value.id)}' of type 'reasoning' was provided without its required following item.`,
    );
  }
}

/** Reads the content of valid items. */
function readConversation(items: readonly Item[]): Conversation {
  const messages = items.filter(({ type }) => type === 'message');
  const last =
    messages.findLast(({ value }) => value.role === 'user') ??
    messages.findLast(({ value }) => value.role !== 'assistant');
  const compacted = items
    .filter(({ type }) => type.startsWith('compaction') && type !== 'compaction_trigger')
    .map(({ value }) => openSeal('compaction', String(value.encrypted_content)));
  return {
    text: last === undefined ? '' : contentText(last.value.content),
    images: last === undefined ? 0 : mediaIn(last.value.content, 'input_image'),
    toolResults: trailingResults(items),
    recalled: compacted.length === 0 ? undefined : compacted.join('\n'),
    tokens:
      compacted.reduce((sum, text) => sum + countTokens(text), 0) +
      items.reduce((sum, item) => sum + tokensOf(item), 0),
  };
}

function partsOf(content: unknown): Record<string, unknown>[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function contentText(content: unknown): string {
  if (typeof content === 'string') {
    return content;
  }
  return partsOf(content)
    .flatMap(({ text, refusal }) => [text, refusal].filter((each) => typeof each === 'string'))
    .join('\n');
}

function mediaIn(content: unknown, ...types: readonly string[]): number {
  return partsOf(content).filter(({ type }) => types.includes(String(type))).length;
}

/** The outputs since the last message, if the conversation ends with one. */
function trailingResults(items: readonly Item[]): readonly string[] {
  if (items.at(-1)?.type.endsWith('_output') !== true) {
    return [];
  }
  const said = items.findLastIndex(({ type }) => type === 'message');
  return items
    .slice(said + 1)
    .filter(({ type }) => type.endsWith('_output'))
    .map(({ value }) => contentText(value.output));
}

function tokensOf({ value }: Item): number {
  const content = value.content ?? value.output;
  const call = String(value.name ?? '') + String(value.arguments ?? value.input ?? '');
  return (
    countTokens(contentText(content)) +
    countTokens(call) +
    mediaIn(content, 'input_image', 'input_file') * tokensPerMedia
  );
}

const leastOutput = 16;
const known = new Set(
  `background client_metadata context_management conversation include input instructions max_output_tokens
  max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key
  prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options
  temperature text tool_choice tools top_logprobs top_p truncation user`.split(/\s+/),
);
/** This protocol's members for settings of chat. */
const moved: Readonly<Record<string, string>> = {
  messages: "'input'",
  max_tokens: "'max_output_tokens'",
  max_completion_tokens: "'max_output_tokens'",
  response_format: "'text.format'",
  reasoning_effort: "'reasoning.effort'",
  verbosity: "'text.verbosity'",
};
const efforts: readonly unknown[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** The input of a response. */
export type InputRequest = Pick<JsonRequest, 'body' | 'digest' | 'directives'>;

/** The members of a request for a response that the simulator reads. */
export interface ResponsesRequest {
  readonly model: string;
  readonly prompt: Prompt;
  /** The settings as received, which the answer repeats. */
  readonly settings: JsonObject;
  readonly items: readonly Item[];
  readonly stream: boolean;
  /** Whether the caller requests a compacted conversation instead of an answer. */
  readonly compacts: boolean;
  readonly showsReasoning: boolean;
  readonly encryptsReasoning: boolean;
  /** Alternatives a token, or null for no log probabilities. */
  readonly topLogprobs: number | null;
}

/**
 * Reads and checks the body of a response.
 * @throws RequestError with what a caller did wrong
 */
export function readResponsesRequest(request: InputRequest): ResponsesRequest {
  const { body } = request;
  checkNames(body);
  const model = modelOf(body, 'sim-text', false);
  checkState(body);
  numberWithin(body, 'temperature', 0, 2);
  numberWithin(body, 'top_p', 0, 1);
  required(body, 'input');
  const include: readonly unknown[] = Array.isArray(body.include) ? body.include : [];
  const reasoning = readReasoning(body.reasoning);
  return {
    model,
    settings: body,
    ...readInput(request, reasoning.effort),
    stream: body.stream === true,
    showsReasoning: reasoning.shown,
    encryptsReasoning: include.includes('reasoning.encrypted_content'),
    topLogprobs: include.includes('message.output_text.logprobs')
      ? (integer(body, 'top_logprobs', 0, 20) ?? 0)
      : null,
  };
}

/**
 * Reads and checks the body of a compaction. Its other members may be those of any previous response.
 * @throws RequestError with what a caller did wrong
 */
export function readCompactRequest(
  request: InputRequest,
): Pick<ResponsesRequest, 'model' | 'prompt' | 'items'> {
  const model = modelOf(request.body, 'sim-text', false);
  checkState(request.body);
  const { prompt, items } = readInput(request, null);
  return { model, prompt, items };
}

function readInput(
  { body, digest, directives }: InputRequest,
  reasoning: string | null,
): Pick<ResponsesRequest, 'prompt' | 'items' | 'compacts'> {
  const items = readItems(body.input ?? []);
  checkHistory(items);
  const conversation = readConversation(items);
  const tools = readTools(body.tools);
  const { choice, allowed } = readToolChoice(body.tool_choice, tools);
  const instructions = typeof body.instructions === 'string' ? body.instructions : '';
  const written = countTokens(instructions) + toolTokens(tools);
  return {
    items,
    compacts: items.at(-1)?.type === 'compaction_trigger',
    prompt: {
      ...saidBy(conversation.text, directives),
      images: conversation.images,
      toolResults: conversation.toolResults,
      tools: allowed,
      toolChoice: choice,
      parallelCalls: body.parallel_tool_calls !== false,
      format: readFormat(body.text),
      reasoning,
      maxTokens: maxTokensOf(body),
      stop: [],
      inputTokens: Math.max(1, conversation.tokens + written),
      recalled: conversation.recalled,
      digest,
    },
  };
}

function checkNames(body: JsonObject): void {
  const foreign = Object.keys(body).find((name) => !known.has(name));
  if (foreign !== undefined && Object.hasOwn(moved, foreign)) {
    throw new RequestError(
      400,
      `Unsupported parameter: '${foreign}'. In the Responses API, this parameter has moved to ${moved[foreign]}.`,
      foreign,
      'unsupported_parameter',
    );
  }
  refuseUnknown(body, known);
}

/** Refuses references to stored state: the simulator stores nothing. */
function checkState(body: JsonObject): void {
  const { previous_response_id: previous = null, conversation = null, prompt = null } = body;
  if (previous !== null && conversation !== null) {
    throw new RequestError(
      400,
      "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
      null,
      'mutually_exclusive_parameters',
    );
  }
  if (previous !== null) {
    throw new RequestError(
      400,
      `Previous response with id '${String(previous)}' not found.`,
      'previous_response_id',
      'previous_response_not_found',
    );
  }
  if (conversation !== null) {
    const id = isObject(conversation) ? conversation.id : conversation;
    throw new RequestError(404, `Conversation with id '${String(id)}' not found.`, 'conversation', null);
  }
  if (prompt !== null) {
    const id = isObject(prompt) ? prompt.id : prompt;
    throw new RequestError(404, `Prompt with id '${String(id)}' not found.`, 'prompt', null);
  }
  if (body.background === true) {
    throw new RequestError(
      400,
      "Unsupported value: 'background' must be false, as no response is stored here.",
      'background',
      'unsupported_value',
    );
  }
}

function maxTokensOf(body: JsonObject): number {
  const limit = integer(body, 'max_output_tokens', 0, Infinity);
  if (limit !== null && limit < leastOutput) {
    throw new RequestError(
      400,
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${leastOutput}, but got ${limit} instead.`,
      'max_output_tokens',
      'integer_below_min_value',
    );
  }
  return limit ?? Infinity;
}

function readReasoning(reasoning: unknown): { readonly effort: string | null; readonly shown: boolean } {
  if (reasoning === undefined || reasoning === null) {
    return { effort: null, shown: false };
  }
  if (!isObject(reasoning)) {
    throw invalid('reasoning', 'an object');
  }
  const { effort = null, summary = null, generate_summary: older = null } = reasoning;
  if (effort !== null && !efforts.includes(effort)) {
    throw invalid('reasoning.effort', `one of ${efforts.join(', ')}`);
  }
  const shown = summary ?? older;
  if (shown !== null && !['auto', 'concise', 'detailed'].includes(shown as string)) {
    throw invalid('reasoning.summary', 'one of auto, concise, detailed');
  }
  return {
    effort: effort === 'none' ? null : ((effort as string | null) ?? 'medium'),
    shown: shown !== null,
  };
}

function readFormat(text: unknown): OutputFormat {
  const format = isObject(text) ? (text.format ?? null) : null;
  if (format === null) {
    return { kind: 'text' };
  }
  switch (isObject(format) ? format.type : null) {
    case 'text':
      return { kind: 'text' };
    case 'json_object':
      return { kind: 'object' };
    case 'json_schema': {
      const { name, schema } = format as JsonObject;
      if (typeof name !== 'string') throw missing('text.format.name');
      if (!isObject(schema)) throw missing('text.format.schema');
      return { kind: 'schema', schema };
    }
    default:
      throw invalid('text.format.type', 'one of text, json_object, json_schema');
  }
}
