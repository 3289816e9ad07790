import {
  type OutputFormat,
  type Prompt,
  saidBy,
  type Tool,
  type ToolChoice,
  toolTokens,
} from '../answer/prompt.js';
import { countTokens } from '../answer/tokens.js';
import { chatModels } from '../chat/request.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import type { JsonRequest } from '../http/route.js';
import { type Block, checkHistory, readContent, readTurns, refuse, stringIn, type Turn } from './history.js';

const namePattern = /^[a-zA-Z0-9_-]{1,128}$/;

/** The tools of a request. */
interface OfferedTools {
  /** Tools that the caller runs, described by a schema. */
  readonly callable: readonly Tool[];
  /** Names of all tools, including server tools. */
  readonly names: readonly string[];
}

/**
 * Reads `tools`; server tools, which have a dated type, are never called.
 * @throws RequestError
 */
function readTools(tools: unknown): OfferedTools {
  const list: unknown = tools ?? [];
  if (!Array.isArray(list)) {
    throw refuse('tools', 'Input should be a valid list');
  }
  const callable: Tool[] = [];
  const names: string[] = [];
  for (const [index, tool] of list.entries()) {
    const path = `tools.${index}`;
    if (!isObject(tool)) {
      throw refuse(path, 'Input should be an object');
    }
    const custom = (tool.type ?? 'custom') === 'custom';
    if (!custom && !/_\d{8}$/.test(String(tool.type)) && tool.type !== 'mcp_toolset') {
      throw refuse(
        path,
        `Input tag '${String(tool.type)}' found using 'type' does not match any of the expected tags`,
      );
    }
    if (custom) {
      callable.push(readTool(tool, `${path}.custom`));
    }
    if (typeof tool.name === 'string') {
      names.push(tool.name);
    }
  }
  if (new Set(names).size < names.length) {
    throw refuse('tools', 'Tool names must be unique.');
  }
  return { callable, names };
}

function readTool(tool: JsonObject, path: string): Tool {
  const name = stringIn(tool, 'name', path);
  if (!namePattern.test(name)) {
    throw refuse(`${path}.name`, `String should match pattern '${namePattern.source}'`);
  }
  const schema = tool.input_schema;
  if (!isObject(schema)) {
    throw refuse(
      `${path}.input_schema`,
      schema === undefined ? 'Field required' : 'Input should be an object',
    );
  }
  if (schema.type !== 'object') {
    throw refuse(
      `${path}.input_schema.type`,
      schema.type === undefined ? 'Field required' : "Input should be 'object'",
    );
  }
  return { name, parameters: schema, custom: false };
}

/**
 * Reads `tool_choice`.
 * @throws RequestError
 */
function readToolChoice(
  choice: unknown,
  tools: OfferedTools,
): { readonly toolChoice: ToolChoice; readonly parallel: boolean } {
  if (choice === undefined || choice === null) {
    return { toolChoice: { mode: 'auto' }, parallel: true };
  }
  if (!isObject(choice)) {
    throw refuse('tool_choice', 'Input should be an object');
  }
  if (tools.names.length === 0) {
    throw new RequestError(400, 'tool_choice may only be specified while providing tools.');
  }
  return { toolChoice: choiceOf(choice, tools), parallel: choice.disable_parallel_tool_use !== true };
}

function choiceOf(choice: JsonObject, tools: OfferedTools): ToolChoice {
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { mode: choice.type };
    case 'any':
      return { mode: 'required' };
    case 'tool': {
      const name = stringIn(choice, 'name', 'tool_choice.tool');
      if (!tools.names.includes(name)) {
        throw new RequestError(400, `Tool '${name}' not found in provided tools`);
      }
      return { mode: 'named', name };
    }
    default:
      throw refuse(
        'tool_choice',
        "Input tag found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'",
      );
  }
}

const leastBudget = 1024;

/** The thinking mode, and whether the answer shows the thinking. */
interface Thinking {
  readonly mode: 'off' | 'enabled' | 'adaptive';
  readonly shown: boolean;
}

/**
 * Reads `thinking`, and refuses settings that are incompatible with it.
 * @throws RequestError
 */
function readThinking(body: JsonObject, toolChoice: ToolChoice, maxTokens: number): Thinking {
  const thinking = body.thinking ?? { type: 'disabled' };
  if (!isObject(thinking)) {
    throw refuse('thinking', 'Input should be an object');
  }
  const mode = thinkingModeOf(thinking, maxTokens);
  checkSampling(body, mode !== 'off');
  if (mode !== 'off' && (toolChoice.mode === 'required' || toolChoice.mode === 'named')) {
    throw new RequestError(400, 'Thinking may not be enabled when tool_choice forces tool use.');
  }
  const display = thinking.display ?? 'summarized';
  if (display !== 'summarized' && display !== 'omitted') {
    throw refuse(`thinking.${String(thinking.type)}.display`, "Input should be 'summarized' or 'omitted'");
  }
  return { mode, shown: display === 'summarized' };
}

function thinkingModeOf(thinking: JsonObject, maxTokens: number): Thinking['mode'] {
  switch (thinking.type) {
    case 'disabled':
      return 'off';
    case 'adaptive':
    case 'between_tools':
      return 'adaptive';
    case 'enabled':
      checkBudget(thinking.budget_tokens, maxTokens);
      return 'enabled';
    default:
      throw refuse(
        'thinking',
        "Input tag found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'",
      );
  }
}

function checkBudget(budget: unknown, maxTokens: number): void {
  const path = 'thinking.enabled.budget_tokens';
  if (typeof budget !== 'number' || !Number.isInteger(budget)) {
    throw refuse(path, budget === undefined ? 'Field required' : 'Input should be a valid integer');
  }
  if (budget < leastBudget) {
    throw refuse(path, `Input should be greater than or equal to ${leastBudget}`);
  }
  if (budget >= maxTokens) {
    throw new RequestError(400, '`max_tokens` must be greater than `thinking.budget_tokens`.');
  }
}

function checkSampling(body: JsonObject, thinks: boolean): void {
  const temperature = numberIn(body, 'temperature', 1);
  const topP = numberIn(body, 'top_p', 1);
  const topK = numberIn(body, 'top_k', Infinity);
  if (!thinks) {
    return;
  }
  if (temperature !== null && temperature !== 1) {
    throw new RequestError(
      400,
      '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.',
    );
  }
  if (topP !== null && topP < 0.95) {
    throw new RequestError(
      400,
      '`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.',
    );
  }
  if (topK !== null) {
    throw new RequestError(400, '`top_k` must be unset when thinking is enabled or in adaptive mode.');
  }
}

function numberIn(body: JsonObject, name: string, most: number): number | null {
  const value = body[name] ?? null;
  if (value !== null && typeof value !== 'number') {
    throw refuse(name, 'Input should be a valid number');
  }
  if (value !== null && (value < 0 || value > most)) {
    throw refuse(
      name,
      most === Infinity ? 'Input should be greater than or equal to 0' : `range: 0..${most}`,
    );
  }
  return value;
}

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
  'thread',
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

/** The members of a messages request that the simulator reads. */
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
export function readMessagesRequest(request: JsonRequest, what: 'message' | 'count'): MessagesRequest {
  const { body, digest } = request;
  if (request.header('anthropic-version') === undefined) {
    throw new RequestError(400, 'anthropic-version: header is required');
  }
  // Requests with a beta header may have fields that are not public yet.
  if (request.header('anthropic-beta') === undefined) {
    checkFields(body, what === 'message' ? created : counted);
  }
  refuseThread(body);
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
  return {
    model,
    stream: body.stream === true,
    thinking,
    prompt: {
      ...saidBy(text, request.directives),
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

/** Refuses threads, since the simulator stores nothing; the SDK then continues without one. */
function refuseThread({ thread = null }: JsonObject): void {
  if (thread !== null) {
    throw new RequestError(400, 'thread: No threads are kept here.', null, 'thread_unsupported_request');
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
  const blocks = [...system, ...turns.flatMap((turn) => turn.blocks)];
  return blocks.reduce((sum, block) => sum + blockTokens(block), toolTokens(tools));
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
  const efforts: readonly unknown[] = ['low', 'medium', 'high', 'xhigh', 'max'];
  if (effort !== null && !efforts.includes(effort)) {
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
