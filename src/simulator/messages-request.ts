import { chatModels } from './chat-request.js';
import { textDirectives } from './directives.js';
import { isObject, type JsonObject } from './json.js';
import { checkHistory } from './messages-history.js';
import { readThinking, type Thinking } from './messages-thinking.js';
import { readToolChoice, readTools } from './messages-tools.js';
import { type Block, readContent, readTurns, refuse, stringIn, type Turn } from './messages-turns.js';
import type { OutputFormat, Prompt, Tool } from './prompt.js';
import { type ProtocolRequest, RequestError } from './protocol-route.js';
import { countTokens } from './tokens.js';

const tokensPerImage = 85;
const counted = [
  'cache_control',
  'context_management',
  'mcp_servers',
  'messages',
  'model',
  'output_config',
  'output_format',
  'speed',
  'system',
  'thinking',
  'tool_choice',
  'tools',
];
const created = [
  ...counted,
  'container',
  'diagnostics',
  'inference_geo',
  'max_tokens',
  'metadata',
  'service_tier',
  'stop_sequences',
  'stream',
  'temperature',
  'top_k',
  'top_p',
  'user_profile_id',
];

/** A request of the messages protocol as far as the simulator reads it. */
export interface MessagesRequest {
  readonly model: string;
  readonly prompt: Prompt;
  readonly stream: boolean;
  readonly thinking: Thinking;
}

/**
 * Reads and checks the body of a message, or of a count of its tokens.
 * @throws RequestError with what a caller did wrong
 */
export function readMessagesRequest(request: ProtocolRequest, what: 'message' | 'count'): MessagesRequest {
  const { body, digest } = request;
  if (request.header('anthropic-version') === undefined) {
    throw new RequestError(400, 'anthropic-version: header is required');
  }
  // Who takes part in a beta may send fields that are not public yet.
  if (request.header('anthropic-beta') === undefined) {
    checkFields(body, what === 'message' ? created : counted);
  }
  const model = stringIn(body, 'model', '').trim();
  const maxTokens = what === 'message' ? integer(body, 'max_tokens', 0) : Infinity;
  if (maxTokens === null) {
    throw refuse('max_tokens', 'Field required');
  }
  const turns = readTurns(body.messages);
  if (!chatModels.includes(model)) {
    throw new RequestError(404, `model: ${model}`);
  }
  const system = body.system === undefined ? [] : readContent(body.system, 'system', ['text']);
  const tools = readTools(body.tools);
  const choice = readToolChoice(body.tool_choice, tools);
  const thinking = readThinking(body, choice.toolChoice, maxTokens);
  checkHistory(turns, thinking.mode === 'enabled');
  const users = turns.filter(({ role }) => role === 'user');
  const text = textOf(users.findLast(({ blocks }) => blocks.some(isText))?.blocks ?? []);
  const asked = textDirectives(text);
  return {
    model,
    stream: body.stream === true,
    thinking,
    prompt: {
      text,
      plainText: asked.rest,
      directives: [...request.directives, ...asked.directives],
      images: imagesIn(users.at(-1)),
      toolResults: resultsIn(turns.at(-1)),
      tools: tools.callable,
      toolChoice: choice.toolChoice,
      parallelCalls: choice.parallel,
      format: readFormat(body),
      reasoning: thinking.mode === 'off' ? null : (effortOf(body) ?? thinking.mode),
      maxTokens,
      stop: readStop(body.stop_sequences),
      inputTokens: Math.max(1, tokensOf(system, turns, tools.callable)),
      digest,
    },
  };
}

function checkFields(body: JsonObject, known: readonly string[]): void {
  const foreign = Object.keys(body).find((name) => !known.includes(name));
  if (foreign !== undefined) {
    throw refuse(foreign, 'Extra inputs are not permitted');
  }
}

function integer(body: JsonObject, name: string, least: number): number | null {
  const value = body[name] ?? null;
  if (value === null) {
    return null;
  }
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw refuse(name, 'Input should be a valid integer');
  }
  if (value < least) {
    throw refuse(name, `Input should be greater than or equal to ${least}`);
  }
  return value;
}

function isText({ type }: Block): boolean {
  return type === 'text';
}

function textOf(blocks: readonly Block[]): string {
  return blocks
    .filter(isText)
    .map(({ value }) => String(value.text))
    .join('\n');
}

function imagesIn(turn: Turn | undefined): number {
  return (turn?.blocks ?? []).filter(({ type }) => type === 'image').length;
}

function resultsIn(turn: Turn | undefined): string[] {
  return (turn?.blocks ?? [])
    .filter(({ type }) => type === 'tool_result')
    .map(({ value }) => resultText(value));
}

function resultText({ content }: JsonObject): string {
  if (typeof content === 'string') {
    return content;
  }
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  return blocks
    .flatMap((block) => (isObject(block) && typeof block.text === 'string' ? [block.text] : []))
    .join('\n');
}

function tokensOf(system: readonly Block[], turns: readonly Turn[], tools: readonly Tool[]): number {
  const offered = tools.map((tool) => tool.name + JSON.stringify(tool.parameters ?? {}));
  const blocks = [...system, ...turns.flatMap((turn) => turn.blocks)];
  return (
    offered.reduce((sum, part) => sum + countTokens(part), 0) +
    blocks.reduce((sum, block) => sum + blockTokens(block), 0)
  );
}

function blockTokens({ type, value }: Block): number {
  switch (type) {
    case 'text':
      return countTokens(String(value.text));
    case 'image':
    case 'document':
      return tokensPerImage;
    case 'tool_use':
      return countTokens(String(value.name) + JSON.stringify(value.input));
    case 'tool_result':
      return countTokens(resultText(value));
    default:
      return 0;
  }
}

function effortOf({ output_config: config }: JsonObject): string | null {
  return isObject(config) && typeof config.effort === 'string' ? config.effort : null;
}

function readFormat({ output_config: config, output_format: older }: JsonObject): OutputFormat {
  if (config !== undefined && config !== null && !isObject(config)) {
    throw refuse('output_config', 'Input should be an object');
  }
  const effort = config?.effort ?? null;
  const efforts = ['low', 'medium', 'high', 'xhigh', 'max'];
  if (effort !== null && !efforts.includes(effort as string)) {
    throw refuse('output_config.effort', `Input should be ${efforts.map((one) => `'${one}'`).join(', ')}`);
  }
  const format = config?.format ?? older ?? null;
  if (format === null) {
    return { kind: 'text' };
  }
  if (!isObject(format) || format.type !== 'json_schema') {
    throw refuse('output_config.format.type', "Input should be 'json_schema'");
  }
  if (!isObject(format.schema)) {
    throw refuse('output_config.format.schema', 'Field required');
  }
  return { kind: 'schema', schema: format.schema };
}

function readStop(stop: unknown): readonly string[] {
  const list: unknown = stop ?? [];
  if (!Array.isArray(list) || !list.every((one): one is string => typeof one === 'string')) {
    throw refuse('stop_sequences', 'Input should be a valid list of strings');
  }
  if (list.some((one) => one.trim() === '')) {
    throw refuse('stop_sequences', 'each stop sequence must contain non-whitespace');
  }
  return list;
}
