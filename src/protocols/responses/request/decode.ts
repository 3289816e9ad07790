import { effortOfWord } from '../../../conversation/effort.js';
import { decodeDataUrl, decodeMediaUrl, hasScheme } from '../../../conversation/media-source.js';
import type {
  AssistantPart,
  ConversationRequest,
  MediaPart,
  MediaSource,
  OutputFormat,
  Reasoning,
  TextPart,
  Tool,
  ToolChoice,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../../conversation/request.js';
import type { GatewayError } from '../../../errors.js';
import { isObject, type JsonObject, listOf, numberOrNull, textOrNull } from '../../../wire/json.js';
import type { Sealer } from '../../../wire/seal.js';
import { decodeServing } from '../../openai-shared/serving.js';
import { untranslatable } from '../../unsupported.js';
import { asCompaction, expandCompaction, isCompaction, keptContents } from '../compact.js';
import { type HostedTool, type ListedTool, listTools, type ToolList, upstreamName } from '../namespaces.js';
import { unreadOf } from '../read-members.js';
import { carriedReasoning } from '../reasoning.js';
import { invalid, missing, nameOfType, ofType, wrongType } from '../refusals.js';

/** Settings that a response repeats. */
const echoed = [
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'parallel_tool_calls',
  'prompt_cache_key',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
  'metadata',
] as const;

/**
 * Decodes the body of `POST /v1/responses`; see `TextCodec.decodeRequest`. An input that ends with a
 * `compaction_trigger` becomes the question for a summary.
 */
export function decodeRequest(body: JsonObject, stream: boolean, sealer: Sealer): ConversationRequest {
  const { request, wantsCompaction } = decodeBody(body, stream, sealer);
  return wantsCompaction ? asCompaction(request, 'item') : request;
}

/** What a compaction is made of; clients send the settings of their turns along, which mean nothing here. */
const compacted = [
  'input',
  'instructions',
  'previous_response_id',
  'tools',
  'safety_identifier',
  'user',
] as const;

/** Decodes the body of `POST /v1/responses/compact`, as the question for a summary. */
export function decodeCompactRequest(
  body: JsonObject,
  _stream: boolean,
  sealer: Sealer,
): ConversationRequest {
  const { request } = decodeBody(pick(body, compacted), false, sealer);
  return { ...asCompaction(request, 'object'), echo: { kept: keptContents(body.input) } };
}

interface DecodedBody {
  readonly request: ConversationRequest;
  readonly wantsCompaction: boolean;
}

function decodeBody(body: JsonObject, stream: boolean, sealer: Sealer): DecodedBody {
  refuseServerState(body);
  const list = listTools(body.tools);
  const input = decodeInput(body.input, list, sealer);
  const text = isObject(body.text) ? body.text : {};
  const { choice, hosted } = decodeToolChoice(body.tool_choice, list);
  const request: ConversationRequest = {
    from: 'responses',
    stream,
    leftOut: unreadOf(body),
    system:
      typeof body.instructions === 'string' && body.instructions !== ''
        ? [body.instructions, ...input.system]
        : input.system,
    turns: input.turns,
    tools: list.listed.map(decodeTool),
    hostedTools: [...list.hosted, ...hosted, ...input.hosted],
    toolChoice: choice,
    parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : null,
    format: decodeFormat(text.format),
    reasoning: decodeReasoning(body.reasoning),
    maxTokens: numberOrNull(body.max_output_tokens),
    temperature: numberOrNull(body.temperature),
    topP: numberOrNull(body.top_p),
    topK: null,
    stop: [],
    candidates: 1,
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
    logitBias: null,
    logprobs: decodeLogprobs(body),
    verbosity: textOrNull(text.verbosity),
    user: textOrNull(body.safety_identifier) ?? textOrNull(body.user),
    ...decodeServing(body),
    ...(typeof body.store === 'boolean' ? { stored: body.store } : {}),
    includeUsage: true,
    echo: pick(body, echoed),
    compaction: null,
  };
  return { request, wantsCompaction: input.wantsCompaction };
}

/** Refuses what lives at an upstream of this protocol, and a body without an input. */
function refuseServerState(body: JsonObject): void {
  for (const member of ['previous_response_id', 'conversation', 'prompt']) {
    if ((body[member] ?? null) !== null) throw untranslatable(member);
  }
  if (body.background === true) throw untranslatable('background');
  if (Array.isArray(body.instructions)) throw untranslatable('instructions', 'as a list of items');
  if ((body.input ?? null) !== null) return;
  throw missing('input', 'a string or an array');
}

function decodeFormat(format: unknown): OutputFormat | null {
  if (!isObject(format) || format.type === 'text') return null;
  if (format.type === 'json_object') return { kind: 'object' };
  if (format.type !== 'json_schema') throw untranslatable('text.format', ofType(format.type));
  if (!isObject(format.schema)) throw missing('text.format.schema', 'an object');
  return {
    kind: 'schema',
    name: textOrNull(format.name),
    description: textOrNull(format.description),
    schema: format.schema,
    strict: typeof format.strict === 'boolean' ? format.strict : null,
  };
}

function decodeReasoning(value: unknown): Reasoning | null {
  if (!isObject(value)) return null;
  const word = textOrNull(value.effort);
  const effort = word === null ? null : effortOfWord(word);
  if (word !== null && effort === null)
    throw invalid('reasoning.effort', `'${word.slice(0, 64)}' is no effort`);
  const wanted = textOrNull(value.summary) ?? textOrNull(value.generate_summary);
  const summary = wanted === 'none' ? null : wanted;
  if (effort === null && summary === null) return null;
  return { effort, budget: null, show: summary !== null, summary };
}

function decodeLogprobs(body: JsonObject): number | null {
  const { include } = body;
  if (!Array.isArray(include) || !include.includes('message.output_text.logprobs')) return null;
  return numberOrNull(body.top_logprobs) ?? 0;
}

/** The members of these names that are there. */
function pick(body: JsonObject, names: readonly string[]): JsonObject {
  const picked: Record<string, unknown> = {};
  for (const name of names) {
    const value = body[name] ?? null;
    if (value !== null) picked[name] = value;
  }
  return picked;
}

/** A URL that was taken for base64 has its colon among so many first characters. */
const schemeCharacters = 16;

/**
 * Decodes the content of a user's message, or the output of a tool.
 * @param content a string or an array of input parts
 * @param at its path in the client's body
 * @throws {GatewayError} naming the part that cannot be taken
 */
function decodeContent(content: unknown, at: string): (TextPart | MediaPart)[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return partsOf(content, at).map((part, index) => decodePart(part, `${at}[${index}]`));
}

/**
 * Decodes the content of a message of the assistant's.
 * @throws {GatewayError} naming the part that is neither a text nor a refusal
 */
function decodeAssistantContent(content: unknown, at: string): AssistantPart[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return partsOf(content, at).map((part, index) => {
    if (isText(part)) return { kind: 'text', text: textOrNull(part.text) ?? '' };
    if (part.type === 'refusal') return { kind: 'refusal', text: textOrNull(part.refusal) ?? '' };
    throw untranslatable(`${at}[${index}]`, ofType(part.type));
  });
}

/**
 * The texts of a message that may hold nothing else.
 * @throws {GatewayError} naming the first part that is no text
 */
function textOfContent(content: unknown, at: string): string {
  if (typeof content === 'string') return content;
  const texts = partsOf(content, at).map((part, index) => {
    if (isText(part) && typeof part.text === 'string') return part.text;
    throw untranslatable(`${at}[${index}]`, ofType(part.type));
  });
  return texts.join('\n');
}

/** The parts of a content that is not a string. @throws {GatewayError} for what is no array of objects */
function partsOf(content: unknown, at: string): readonly JsonObject[] {
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array');
  content.forEach((part, index) => {
    if (!isObject(part)) throw wrongType(`${at}[${index}]`, 'an object');
  });
  return content;
}

function isText({ type }: JsonObject): boolean {
  return type === 'input_text' || type === 'output_text' || type === 'text';
}

function decodePart(part: JsonObject, at: string): TextPart | MediaPart {
  if (isText(part)) return { kind: 'text', text: textOrNull(part.text) ?? '' };
  switch (part.type) {
    case 'input_image':
      return {
        kind: 'image',
        source: imageSource(part, at),
        detail: textOrNull(part.detail),
        name: null,
        at,
      };
    case 'input_file': {
      const source = fileSource(part, at);
      // A file may be of any type here; elsewhere an image is another thing than a document.
      if (source.kind === 'data' && source.mediaType.startsWith('image/'))
        return { kind: 'image', source, detail: null, name: null, at };
      return { kind: 'document', source, detail: null, name: textOrNull(part.filename), at };
    }
    default:
      throw untranslatable(at, ofType(part.type));
  }
}

function imageSource(part: JsonObject, at: string): MediaSource {
  const url = textOrNull(part.image_url) ?? '';
  if (url === '') throw noSource(part, at, 'image_url');
  return decodeMediaUrl(url, `${at}.image_url`);
}

function fileSource(part: JsonObject, at: string): MediaSource {
  const data = textOrNull(part.file_data) ?? '';
  if (data !== '') return bytesOfFile(data, textOrNull(part.filename), `${at}.file_data`);
  const url = textOrNull(part.file_url) ?? '';
  if (url === '') throw noSource(part, at, 'file_data');
  return decodeMediaUrl(url, `${at}.file_url`);
}

/** The bytes of a file come as a data URL or as base64 alone. */
function bytesOfFile(data: string, name: string | null, at: string): MediaSource {
  if (hasScheme(data, 'data:')) return decodeDataUrl(data, at);
  if (data.slice(0, schemeCharacters).includes(':')) throw invalid(at, 'expected base64 or a data URL');
  const mediaType = name?.toLowerCase().endsWith('.pdf') ? 'application/pdf' : 'application/octet-stream';
  return { kind: 'data', mediaType, data };
}

function noSource(part: JsonObject, at: string, member: string): GatewayError {
  if (typeof part.file_id === 'string' && part.file_id !== '') return untranslatable(`${at}.file_id`);
  return missing(`${at}.${member}`, 'the bytes or the URL of what is sent');
}

/** What the names of items begin with that a tool of the upstream's own, and its output, have in a conversation. */
const hostedPrefixes: readonly string[] = [
  'web_search_',
  'file_search_',
  'code_interpreter_',
  'image_generation_',
  'computer_',
  'mcp_',
  'local_shell_',
  'shell_',
  'apply_patch_',
  'tool_search_',
];

/** What a client's input says. */
interface DecodedInput {
  /** Texts of the instructions before the first turn. */
  readonly system: string[];
  readonly turns: Turn[];
  /** Items of tools that only an upstream of the protocol runs; they are in no turn. */
  readonly hosted: HostedTool[];
  /** The input ends with the wish for a compaction. */
  readonly wantsCompaction: boolean;
}

/**
 * Decodes `input`. Adjacent items of the assistant become one turn, and so do adjacent outputs of its calls.
 * @param tools the client's tools: calls name them as the client does
 * @throws {GatewayError} naming the item that cannot be taken
 */
function decodeInput(input: unknown, tools: ToolList, sealer: Sealer): DecodedInput {
  if (typeof input === 'string') {
    const turns = [userTurn([{ kind: 'text', text: input }])];
    return { system: [], turns, hosted: [], wantsCompaction: false };
  }
  const reader = new InputReader(tools, sealer);
  const items = listOf(input);
  let wantsCompaction = false;
  items.forEach((item, index) => {
    const at = `input[${index}]`;
    if (!isObject(item)) throw wrongType(at, 'an object');
    if (item.type !== 'compaction_trigger') reader.read(item, at);
    else if (index === items.length - 1) wantsCompaction = true;
    else throw invalid(at, `an item of type 'compaction_trigger' must be the last one`);
  });
  const { system, turns, hosted } = reader;
  return { system, turns, hosted, wantsCompaction };
}

class InputReader {
  readonly system: string[] = [];
  readonly turns: Turn[] = [];
  readonly hosted: HostedTool[] = [];
  readonly #tools: ToolList;
  readonly #sealer: Sealer;
  /** Names of the calls so far, by their ids: an output does not say which tool gave it. */
  readonly #called = new Map<string, string>();
  /** Parts of the last turn, while it is one that another item may join. */
  #assistant: AssistantPart[] | null = null;
  #results: UserPart[] | null = null;

  constructor(tools: ToolList, sealer: Sealer) {
    this.#tools = tools;
    this.#sealer = sealer;
  }

  read(item: JsonObject, at: string): void {
    switch (item.type) {
      case undefined:
      case null:
      case 'message':
        this.#message(item, at);
        break;
      case 'function_call':
        this.#call(item, { input: textOrNull(item.arguments) || '{}', custom: false, at });
        break;
      case 'custom_tool_call':
        this.#call(item, { input: textOrNull(item.input) ?? '', custom: true, at });
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#output(item, at);
        break;
      case 'reasoning':
        this.#reasoning(item);
        break;
      default:
        if (isCompaction(item))
          this.#turn(userTurn([{ kind: 'text', text: expandCompaction(item, at, this.#sealer) }]));
        else if (isHostedItem(item.type)) this.hosted.push({ type: item.type, at });
        else throw untranslatable(at, ofType(item.type));
    }
  }

  #message(item: JsonObject, at: string): void {
    const { role, content } = item;
    const path = `${at}.content`;
    switch (role) {
      case 'system':
      case 'developer': {
        const text = textOfContent(content, path);
        if (text === '') break;
        if (this.turns.length > 0) this.#turn({ role: 'system', text });
        else this.system.push(text);
        break;
      }
      case 'user':
        this.#turn(userTurn(decodeContent(content, path)));
        break;
      case 'assistant':
        for (const part of decodeAssistantContent(content, path)) this.#part(part);
        break;
      default:
        throw untranslatable(`${at}.role`, `'${nameOfType(role)}'`);
    }
  }

  #call(item: JsonObject, call: { input: string; custom: boolean; at: string }): void {
    const id = requireCallId(item, call.at);
    if (typeof item.name !== 'string') throw missing(`${call.at}.name`, 'a string');
    const name = upstreamName(this.#tools, item.namespace, item.name);
    this.#called.set(id, name);
    this.#part({ kind: 'toolCall', id, name, ...call });
  }

  #output(item: JsonObject, at: string): void {
    const callId = requireCallId(item, at);
    const result: ToolResultPart = {
      kind: 'toolResult',
      callId,
      name: this.#called.get(callId) ?? '',
      content: decodeContent(item.output, `${at}.output`),
      isError: false,
      at,
    };
    if (this.#results === null) {
      const results: UserPart[] = [];
      this.#turn(userTurn(results));
      this.#results = results;
    }
    this.#results.push(result);
  }

  #reasoning(item: JsonObject): void {
    const text = joinedTexts(item.summary) || joinedTexts(item.content);
    const signature = carriedReasoning(item);
    if (text !== '' || signature !== null) this.#part({ kind: 'reasoning', text, signature });
  }

  #part(part: AssistantPart): void {
    if (this.#assistant === null) {
      const parts: AssistantPart[] = [];
      this.#turn({ role: 'assistant', parts });
      this.#assistant = parts;
    }
    this.#assistant.push(part);
  }

  #turn(turn: Turn): void {
    this.#assistant = null;
    this.#results = null;
    this.turns.push(turn);
  }
}

function userTurn(parts: UserPart[]): Turn {
  return { role: 'user', parts };
}

/** The texts of a reasoning item's parts, with a blank line between them. */
export function joinedTexts(parts: unknown): string {
  if (!Array.isArray(parts)) return '';
  const texts = parts.map((part) => (isObject(part) ? (textOrNull(part.text) ?? '') : ''));
  return texts.filter((text) => text !== '').join('\n\n');
}

function requireCallId(item: JsonObject, at: string): string {
  if (typeof item.call_id === 'string' && item.call_id !== '') return item.call_id;
  throw missing(`${at}.call_id`, 'a non-empty string');
}

/** Whether an item of a conversation belongs to a tool that only an upstream of the protocol runs. */
function isHostedItem(type: unknown): type is string {
  return typeof type === 'string' && hostedPrefixes.some((prefix) => type.startsWith(prefix));
}

/** Deeper schemas are not looked through. */
const deepest = 32;

/** Decodes a function or a custom tool of a client's list. */
function decodeTool({ tool, name }: ListedTool): Tool {
  const description = textOrNull(tool.description);
  if (tool.type === 'custom') {
    const { format } = tool;
    const custom = { format: isObject(format) && format.type !== 'text' ? format : null };
    return { name, description, parameters: null, strict: null, custom };
  }
  const parameters = isObject(tool.parameters) ? tool.parameters : null;
  return { name, description, parameters, strict: strictOf(tool.strict, parameters) };
}

function strictOf(value: unknown, parameters: JsonObject | null): boolean | null {
  if (typeof value === 'boolean') return value;
  return value === undefined && isStrictByDefault(parameters) ? true : null;
}

/** A client's `tool_choice`, and what of it is about tools that only an upstream of the protocol runs. */
interface DecodedChoice {
  readonly choice: ToolChoice | null;
  readonly hosted: readonly HostedTool[];
}

/**
 * Decodes `tool_choice`.
 * @param list the client's tools
 * @throws {GatewayError} for an unknown form
 */
function decodeToolChoice(choice: unknown, list: ToolList): DecodedChoice {
  if (choice === undefined || choice === null) return { choice: null, hosted: [] };
  if (choice === 'none' || choice === 'auto' || choice === 'required')
    return { choice: { mode: choice }, hosted: [] };
  if (typeof choice === 'string')
    throw invalid('tool_choice', 'expected "none", "auto", "required" or an object');
  if (!isObject(choice)) throw untranslatable('tool_choice');
  if (choice.type === 'allowed_tools') return decodeAllowed(choice, list);
  const at = 'tool_choice';
  if (!isOwn(choice)) return { choice: null, hosted: [{ type: nameOfType(choice.type), at }] };
  return { choice: { mode: 'named', name: chosenName(choice, at, list) }, hosted: [] };
}

function decodeAllowed(choice: JsonObject, list: ToolList): DecodedChoice {
  const names: string[] = [];
  const hosted: HostedTool[] = [];
  const tools = listOf(choice.tools);
  tools.forEach((tool, index) => {
    const at = `tool_choice.tools[${index}]`;
    if (!isObject(tool)) throw untranslatable(at);
    if (isOwn(tool)) names.push(chosenName(tool, at, list));
    else hosted.push({ type: nameOfType(tool.type), at });
  });
  // Where the tools of the upstream are left out, nothing that may be called remains.
  if (names.length === 0 && hosted.length > 0) return { choice: { mode: 'none' }, hosted };
  return { choice: { mode: 'allowed', names, required: choice.mode === 'required' }, hosted };
}

/** The choice is of a tool that the client runs. */
function isOwn({ type }: JsonObject): boolean {
  return type === 'function' || type === 'custom';
}

function chosenName(choice: JsonObject, at: string, list: ToolList): string {
  if (typeof choice.name === 'string') return upstreamName(list, choice.namespace, choice.name);
  throw missing(`${at}.name`, 'a string');
}

/**
 * Whether a tool without a `strict` member is a strict one. The protocol makes it one where its schema allows that:
 * every object closed, and all of its properties required.
 * @param parameters JSON Schema of the arguments
 */
function isStrictByDefault(parameters: JsonObject | null): boolean {
  return parameters !== null && parameters.type === 'object' && isClosed(parameters, deepest);
}

function isClosed(schema: unknown, levels: number): boolean {
  if (levels === 0) return false;
  if (Array.isArray(schema)) return schema.every((each) => isClosed(each, levels - 1));
  if (!isObject(schema)) return false;
  if (schema.oneOf !== undefined || schema.allOf !== undefined) return false;
  const { properties, required } = schema;
  if (schema.type === 'object' || properties !== undefined) {
    if (schema.additionalProperties !== false || !isObject(properties)) return false;
    for (const name of Object.keys(properties)) {
      if (!Array.isArray(required) || !required.includes(name)) return false;
      if (!isClosed(properties[name], levels - 1)) return false;
    }
  }
  if (schema.items !== undefined && !isClosed(schema.items, levels - 1)) return false;
  if (schema.anyOf !== undefined && !isClosed(schema.anyOf, levels - 1)) return false;
  const definitions = schema.$defs ?? schema.definitions;
  return definitions === undefined || (isObject(definitions) && areClosed(definitions, levels));
}

function areClosed(schemas: JsonObject, levels: number): boolean {
  return Object.keys(schemas).every((name) => isClosed(schemas[name], levels - 1));
}
