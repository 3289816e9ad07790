import { textDirectives } from './directives.js';
import { isObject, type JsonObject } from './json.js';
import { integer, invalid, type JsonRequest, modelOf } from './json-request.js';
import { OpenAiError } from './openai-error.js';
import type { OutputFormat, Prompt } from './prompt.js';
import { checkHistory, readConversation } from './responses-history.js';
import { type Item, readItems } from './responses-items.js';
import { readToolChoice, readTools } from './responses-tools.js';
import { countTokens } from './tokens.js';

const leastOutput = 16;
const known = new Set(
  `background client_metadata context_management conversation include input instructions max_output_tokens
  max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key
  prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options
  temperature text tool_choice tools top_logprobs top_p truncation user`.split(/\s+/),
);
/** Where settings of chat stand in this protocol. */
const moved: Readonly<Record<string, string>> = {
  messages: "'input'",
  max_tokens: "'max_output_tokens'",
  max_completion_tokens: "'max_output_tokens'",
  response_format: "'text.format'",
  reasoning_effort: "'reasoning.effort'",
  verbosity: "'text.verbosity'",
};
const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** A request for a response as far as the simulator reads it. */
export interface ResponsesRequest {
  readonly model: string;
  readonly prompt: Prompt;
  /** As they came: what the answer repeats. */
  readonly settings: JsonObject;
  readonly items: readonly Item[];
  readonly stream: boolean;
  /** Whether the caller asks for a compacted conversation in place of an answer. */
  readonly compacts: boolean;
  readonly showsReasoning: boolean;
  readonly encryptsReasoning: boolean;
  /** Alternatives a token, or null for no log probabilities. */
  readonly topLogprobs: number | null;
}

/**
 * Reads and checks the body of a response.
 * @throws OpenAiError with what a caller did wrong
 */
export function readResponsesRequest(request: JsonRequest): ResponsesRequest {
  const { body } = request;
  checkNames(body);
  const model = modelOf(body, 'sim-text', false);
  checkState(body);
  checkNumbers(body);
  if ((body.input ?? null) === null) {
    throw new OpenAiError(400, "Missing required parameter: 'input'.", 'input', 'missing_required_parameter');
  }
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
 * Reads and checks the body of a compaction, whose other members are those of whatever response went before it.
 * @throws OpenAiError with what a caller did wrong
 */
export function readCompactRequest(
  request: JsonRequest,
): Pick<ResponsesRequest, 'model' | 'prompt' | 'items'> {
  const model = modelOf(request.body, 'sim-text', false);
  checkState(request.body);
  const { prompt, items } = readInput(request, null);
  return { model, prompt, items };
}

function readInput(
  { body, digest, directives }: JsonRequest,
  reasoning: string | null,
): Pick<ResponsesRequest, 'prompt' | 'items' | 'compacts'> {
  const items = readItems(body.input ?? []);
  checkHistory(items);
  const conversation = readConversation(items);
  const asked = textDirectives(conversation.text);
  const tools = readTools(body.tools);
  const { choice, allowed } = readToolChoice(body.tool_choice, tools);
  const instructions = typeof body.instructions === 'string' ? body.instructions : '';
  const offered = tools.map((tool) => tool.name + JSON.stringify(tool.parameters ?? {}));
  const written = [instructions, ...offered].reduce((sum, part) => sum + countTokens(part), 0);
  return {
    items,
    compacts: items.at(-1)?.type === 'compaction_trigger',
    prompt: {
      text: conversation.text,
      plainText: asked.rest,
      directives: [...directives, ...asked.directives],
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
  if (foreign === undefined) {
    return;
  }
  const place = Object.hasOwn(moved, foreign) ? moved[foreign] : undefined;
  if (place !== undefined) {
    throw new OpenAiError(
      400,
      `Unsupported parameter: '${foreign}'. In the Responses API, this parameter has moved to ${place}.`,
      foreign,
      'unsupported_parameter',
    );
  }
  throw new OpenAiError(400, `Unknown parameter: '${foreign}'.`, foreign, 'unknown_parameter');
}

/** Refuses what would need something stored: the simulator stores nothing. */
function checkState(body: JsonObject): void {
  const { previous_response_id: previous = null, conversation = null, prompt = null } = body;
  if (previous !== null && conversation !== null) {
    throw new OpenAiError(
      400,
      "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
      null,
      'mutually_exclusive_parameters',
    );
  }
  if (previous !== null) {
    throw new OpenAiError(
      400,
      `Previous response with id '${String(previous)}' not found.`,
      'previous_response_id',
      'previous_response_not_found',
    );
  }
  if (conversation !== null) {
    const id = isObject(conversation) ? conversation.id : conversation;
    throw new OpenAiError(404, `Conversation with id '${String(id)}' not found.`, 'conversation', null);
  }
  if (prompt !== null) {
    const id = isObject(prompt) ? prompt.id : prompt;
    throw new OpenAiError(404, `Prompt with id '${String(id)}' not found.`, 'prompt', null);
  }
  if (body.background === true) {
    throw new OpenAiError(
      400,
      "Unsupported value: 'background' must be false, as no response is stored here.",
      'background',
      'unsupported_value',
    );
  }
}

function checkNumbers(body: JsonObject): void {
  for (const [name, most] of [
    ['temperature', 2],
    ['top_p', 1],
  ] as const) {
    const value = body[name] ?? null;
    if (value !== null && (typeof value !== 'number' || value < 0 || value > most)) {
      throw invalid(name, `a number from 0 to ${most}`);
    }
  }
}

function maxTokensOf(body: JsonObject): number {
  const limit = integer(body, 'max_output_tokens', 0, Infinity);
  if (limit !== null && limit < leastOutput) {
    throw new OpenAiError(
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
  if (effort !== null && !efforts.includes(effort as string)) {
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
      if (typeof name !== 'string') {
        throw new OpenAiError(
          400,
          "Missing required parameter: 'text.format.name'.",
          'text.format.name',
          'missing_required_parameter',
        );
      }
      if (!isObject(schema)) {
        throw new OpenAiError(
          400,
          "Missing required parameter: 'text.format.schema'.",
          'text.format.schema',
          'missing_required_parameter',
        );
      }
      return { kind: 'schema', schema };
    }
    default:
      throw invalid('text.format.type', 'one of text, json_object, json_schema');
  }
}
