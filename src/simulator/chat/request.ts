import {
  type OutputFormat,
  type Prompt,
  saidBy,
  type Tool,
  type ToolChoice,
  toolTokens,
} from '../answer/prompt.js';
import { countTokens } from '../answer/tokens.js';
import { isObject, type JsonObject } from '../http/json.js';
import type { JsonRequest } from '../http/route.js';
import { integer, invalid, modelOf, readStop, required } from '../openai/values.js';

/** Models that the simulator offers for conversations. */
export const chatModels: readonly string[] = ['sim-text'];

const tokensPerImage = 85;
const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function'];

/** The members of a chat request that the simulator reads. */
export interface ChatRequest {
  readonly model: string;
  readonly prompt: Prompt;
  readonly choices: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Alternatives per token, or null for no log probabilities. */
  readonly topLogprobs: number | null;
  /** Whether tools are in the deprecated form, which is then used for calls, too. */
  readonly legacyFunctions: boolean;
}

/**
 * Reads and checks the body of a chat completion.
 * @throws RequestError with what a caller did wrong.
 */
export function readChatRequest({ body, digest, directives }: JsonRequest): ChatRequest {
  const model = modelOf(body, 'sim-text', false);
  const messages = readMessages(body);
  const legacyFunctions = !Array.isArray(body.tools) && Array.isArray(body.functions);
  const tools = readTools(body);
  const inputTokens = Math.max(1, tokensOf(messages, tools));
  return {
    model,
    choices: integer(body, 'n', 1, 128) ?? 1,
    stream: body.stream === true,
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    topLogprobs: body.logprobs === true ? Number(body.top_logprobs ?? 0) : null,
    legacyFunctions,
    prompt: {
      ...saidBy(lastUserText(messages), directives),
      images: imagesIn(messages.findLast((message) => message.role === 'user')),
      toolResults: trailingResults(messages),
      tools: allowedTools(body, tools),
      toolChoice: readToolChoice(legacyFunctions ? body.function_call : body.tool_choice, tools),
      parallelCalls: !legacyFunctions && body.parallel_tool_calls !== false,
      format: readFormat(body.response_format),
      reasoning:
        typeof body.reasoning_effort === 'string' && body.reasoning_effort !== 'none'
          ? body.reasoning_effort
          : null,
      maxTokens:
        integer(body, 'max_completion_tokens', 1, Infinity) ??
        integer(body, 'max_tokens', 1, Infinity) ??
        Infinity,
      stop: readStop(body),
      inputTokens,
      digest,
    },
  };
}

function readMessages(body: JsonObject): readonly JsonObject[] {
  const messages = required(body, 'messages');
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalid('messages', 'an array with at least one message');
  }
  return messages.map((message: unknown, index) => {
    if (!isObject(message)) {
      throw invalid(`messages[${index}]`, 'an object');
    }
    if (typeof message.role !== 'string' || !roles.includes(message.role)) {
      throw invalid(`messages[${index}].role`, `one of ${roles.join(', ')}`);
    }
    return message;
  });
}

function parts(message: JsonObject | undefined): readonly JsonObject[] {
  const content = message?.content;
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function textIn(message: JsonObject | undefined): string {
  if (typeof message?.content === 'string') {
    return message.content;
  }
  return parts(message)
    .flatMap((part) => (typeof part.text === 'string' ? [part.text] : []))
    .join('\n');
}

function lastUserText(messages: readonly JsonObject[]): string {
  return textIn(messages.findLast((message) => message.role === 'user') ?? messages.at(-1));
}

function imagesIn(message: JsonObject | undefined): number {
  return parts(message).filter((part) => part.type === 'image_url').length;
}

function isResult(message: JsonObject): boolean {
  return message.role === 'tool' || message.role === 'function';
}

function trailingResults(messages: readonly JsonObject[]): string[] {
  const last = messages.findLastIndex((message) => !isResult(message));
  return messages.slice(last + 1).map(textIn);
}

function tokensOf(messages: readonly JsonObject[], tools: readonly Tool[]): number {
  const calls = messages.map((message) =>
    JSON.stringify(message.tool_calls ?? message.function_call ?? '').slice(2),
  );
  const images = messages.reduce((sum, message) => sum + imagesIn(message), 0);
  const written = [...messages.map(textIn), ...calls].reduce((sum, part) => sum + countTokens(part), 0);
  return written + toolTokens(tools) + images * tokensPerImage;
}

function readTools(body: JsonObject): readonly Tool[] {
  const legacy = Array.isArray(body.functions)
    ? body.functions.map((item) => ({ type: 'function', function: item }))
    : [];
  const offered: readonly unknown[] = Array.isArray(body.tools) ? body.tools : legacy;
  return offered.map((item, index) => {
    const kind = isObject(item) && item.type === 'custom' ? 'custom' : 'function';
    const definition = isObject(item) ? item[kind] : null;
    if (!isObject(definition) || typeof definition.name !== 'string') {
      throw invalid(`tools[${index}].${kind}.name`, 'a string');
    }
    return { name: definition.name, parameters: definition.parameters ?? null, custom: kind === 'custom' };
  });
}

function nameIn(choice: unknown): string | null {
  if (!isObject(choice)) {
    return null;
  }
  const definition = choice.function ?? choice.custom ?? choice;
  return isObject(definition) && typeof definition.name === 'string' ? definition.name : null;
}

function readToolChoice(choice: unknown, tools: readonly Tool[]): ToolChoice {
  if (choice === 'none' || choice === 'required') {
    return { mode: choice };
  }
  if (isObject(choice) && choice.type === 'allowed_tools' && isObject(choice.allowed_tools)) {
    return { mode: choice.allowed_tools.mode === 'required' ? 'required' : 'auto' };
  }
  const name = nameIn(choice);
  if (name === null) {
    return { mode: 'auto' };
  }
  if (!tools.some((tool) => tool.name === name)) {
    throw invalid('tool_choice', `the name of one of the tools, not '${name}'`);
  }
  return { mode: 'named', name };
}

function allowedTools(body: JsonObject, tools: readonly Tool[]): readonly Tool[] {
  const allowed = isObject(body.tool_choice) ? body.tool_choice.allowed_tools : undefined;
  if (!isObject(allowed) || !Array.isArray(allowed.tools)) {
    return tools;
  }
  const names = new Set(allowed.tools.map(nameIn));
  return tools.filter((tool) => names.has(tool.name));
}

function readFormat(format: unknown): OutputFormat {
  if (isObject(format) && format.type === 'json_schema') {
    if (!isObject(format.json_schema) || typeof format.json_schema.name !== 'string') {
      throw invalid('response_format.json_schema', 'an object with a name');
    }
    return { kind: 'schema', schema: format.json_schema.schema ?? { type: 'object' } };
  }
  return { kind: isObject(format) && format.type === 'json_object' ? 'object' : 'text' };
}
