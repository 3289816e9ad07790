import { cacheMarkOf, marked, markedAsWhole } from '../../../conversation/cache-marks.js';
import { withoutOwnTokens } from '../../../conversation/carrying-id.js';
import { decodeMediaUrl, isHttpUrl } from '../../../conversation/media-source.js';
import type {
  AssistantPart,
  Cacheable,
  CacheMark,
  ContentPart,
  ConversationRequest,
  HostedTool,
  MediaPart,
  MediaSource,
  OutputFormat,
  RefusalPart,
  TextPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
} from '../../../conversation/request.js';
import { CallQueue } from '../../../conversation/tool-calls.js';
import { entryOf } from '../../../wire/entry-of.js';
import {
  decodeStop,
  flagOrNull,
  invalidValue,
  isObject,
  type JsonObject,
  missingValue,
  nameOfType,
  numberOrNull,
  objectOf,
  objectsOf,
  requireName,
  textOf,
  textOrNull,
  wrongValue,
} from '../../../wire/json.js';
import { breakpointOf } from '../../openai-shared/cache-breakpoint.js';
import { decodeFileData, filePartOf } from '../../openai-shared/file-part.js';
import { decodeSchema, decodeServing, decodeUser, sparedUser } from '../../openai-shared/settings.js';
import { ofType, unreadMembers, untranslatable } from '../../unsupported.js';
import { carriedReasoning, cutIdOf, withReasoning } from '../carried.js';
import { hasMembers, namedSchema, readMembers } from '../read-members.js';
import { decodeReasoning, wantsUsage } from '../reasoning.js';
import { decodeSearch } from '../search-options.js';

/**
 * Reads the body of `POST /v1/chat/completions`; see `TextCodec.decodeRequest`. Drops what no other protocol can
 * express if the answer is the same without it.
 * @throws {GatewayError} of status 400, naming the field
 */
export function decodeRequest(body: JsonObject, stream: boolean): ConversationRequest {
  requireTextOutput(body.modalities);
  const { tools, hostedTools } = decodeTools(body);
  const functionForm = objectsOf(body.tools).length === 0 && objectsOf(body.functions).length > 0;
  const [newer, older] = [decodeLimit(body, 'max_completion_tokens'), decodeLimit(body, 'max_tokens')];
  const { system, systemCache, turns, leftOut } = decodeMessages(body.messages);
  return {
    from: 'chat',
    stream,
    leftOut: [...leftOut, ...unreadMembers(body, readMembers(body)), ...sparedUser(body)],
    system,
    systemCache: systemCache.some((cache) => cache !== null) ? systemCache : undefined,
    turns,
    tools,
    hostedTools,
    search: decodeSearch(body),
    toolChoice: decodeToolChoice(body),
    parallelCalls: flagOrNull(body.parallel_tool_calls),
    format: decodeFormat(body.response_format),
    reasoning: decodeReasoning(body),
    maxTokens: newer ?? older,
    temperature: numberOrNull(body.temperature),
    topP: numberOrNull(body.top_p),
    topK: null,
    stop: decodeStop(body.stop),
    candidates: numberOrNull(body.n) ?? 1,
    seed: numberOrNull(body.seed),
    presencePenalty: numberOrNull(body.presence_penalty),
    frequencyPenalty: numberOrNull(body.frequency_penalty),
    logitBias: isObject(body.logit_bias) && Object.keys(body.logit_bias).length > 0 ? body.logit_bias : null,
    logprobs: body.logprobs === true ? (numberOrNull(body.top_logprobs) ?? 0) : null,
    verbosity: textOrNull(body.verbosity),
    ...decodeUser(body),
    serving: decodeServing(body),
    includeUsage: wantsUsage(body),
    functionForm,
    echo: null,
    compaction: null,
  };
}

/** @returns the most tokens that may be generated; null if there is no limit, which may be written as -1 */
function decodeLimit(body: JsonObject, name: string): number | null {
  const limit = numberOrNull(body[name]);
  if (limit === 0) throw invalidValue(name, 'expected an integer of at least 1, or -1 for no limit, found 0');
  return limit === -1 ? null : limit;
}

function requireTextOutput(modalities: unknown): void {
  if (!Array.isArray(modalities)) return;
  const other = modalities.find((modality) => modality !== 'text');
  if (other !== undefined) throw untranslatable('modalities', `with '${nameOfType(other)}'`);
}

function decodeFormat(format: unknown): OutputFormat | null {
  if (!isObject(format) || format.type === 'text') return null;
  if (format.type !== 'json_schema' && format.type !== 'json_object')
    throw untranslatable('response_format', ofType(format.type));
  const named = namedSchema(format);
  if (named !== null) return decodeSchema(named, objectOf(named.schema));
  // Together, Fireworks and llama.cpp take the schema beside either type (https://docs.together.ai/docs/json-mode).
  // Without one, any JSON is requested.
  return hasMembers(format.schema) ? decodeSchema({}, format.schema) : { kind: 'object' };
}

/**
 * Reads the content of a message.
 * @param at path of the content in the client's body
 * @param decodePart throws an error of status 400 for parts that are malformed or that no other protocol has at this
 * place
 */
function decodeContent<Part extends Cacheable>(
  content: unknown,
  at: string,
  decodePart: (part: JsonObject, at: string) => Part | TextPart,
): (Part | TextPart)[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return objectsOf(content).map((part, index) =>
    marked(decodePart(part, `${at}[${index}]`), cacheMarkOf(part) ?? breakpointOf(part)),
  );
}

function userPart(part: JsonObject, at: string): ContentPart {
  switch (part.type) {
    case 'image_url':
      return imagePart(part, at);
    case 'input_audio':
      return audioPart(part, at);
    case 'file':
      return filePart(part, at);
    default:
      return textPart(part, at);
  }
}

/** Tells whether a text has content. Clients send an empty one beside tool calls. */
function isNotEmpty({ text }: TextPart | RefusalPart): boolean {
  return text !== '';
}

function assistantPart(part: JsonObject, at: string): TextPart | RefusalPart {
  if (part.type !== 'refusal') return textPart(part, at);
  return { kind: 'refusal', text: textOf(part.refusal) };
}

function textPart(part: JsonObject, at: string): TextPart {
  if (part.type !== 'text') throw untranslatable(at, ofType(part.type));
  return { kind: 'text', text: textOf(part.text) };
}

function imagePart(part: JsonObject, at: string): MediaPart {
  if (typeof part.image_url === 'string') {
    const source = decodeMediaUrl(part.image_url, `${at}.image_url`);
    return { kind: 'image', source, detail: null, name: null, at };
  }
  const image = objectOf(part.image_url);
  const source = decodeMediaUrl(textOf(image.url), `${at}.image_url.url`);
  return { kind: 'image', source, detail: textOrNull(image.detail), name: null, at };
}

function audioPart(part: JsonObject, at: string): MediaPart {
  const audio = objectOf(part.input_audio);
  const data = textOf(audio.data);
  const format = textOf(audio.format).toLowerCase();
  const mediaType = format === 'mp3' ? 'audio/mpeg' : `audio/${format}`;
  return { kind: 'audio', source: { kind: 'data', mediaType, data }, detail: null, name: null, at };
}

function filePart(part: JsonObject, at: string): MediaPart {
  const file = objectOf(part.file);
  const name = textOrNull(file.filename);
  const data = textOrNull(file.file_data);
  if (data === null && typeof file.file_id === 'string') throw untranslatable(`${at}.file.file_id`);
  if (data === null) throw wrongValue(`${at}.file.file_data`, 'a string');
  // The form that OpenRouter's clients send (https://openrouter.ai/docs/guides/overview/multimodal/pdfs).
  const source: MediaSource = isHttpUrl(data)
    ? { kind: 'url', url: data, mediaType: null }
    : decodeFileData(data, name, `${at}.file.file_data`);
  return filePartOf(source, name, at);
}

/** State while messages are read in their order. */
interface Progress {
  /** Texts of the system and developer messages that stand before all others. */
  readonly system: string[];
  readonly systemCache: (CacheMark | null)[];
  readonly turns: Turn[];
  /** Receives the name of an id that has lost its signatures. */
  readonly leftOut: Set<string>;
  /** Names of the tools by the ids of their calls: results contain only the id. */
  readonly toolNames: Map<string, string>;
  /** Results of the turn that the next tool message is added to; null after any other message. */
  results: ToolResultPart[] | null;
  readonly functionCalls: FunctionCalls;
  /** Ids of the calls that results without ids are of, by the results' messages. */
  readonly unnamedResults: Map<JsonObject, string>;
  readonly messages: readonly JsonObject[];
}

/**
 * Reads `messages`. Consecutive tool messages become one user turn. Messages without content are left out. `name` is
 * dropped, since no other protocol can carry it.
 * @throws {GatewayError} of status 400 for roles, parts and calls that cannot be translated
 */
function decodeMessages(messages: unknown): Pick<Progress, 'system' | 'systemCache' | 'turns' | 'leftOut'> {
  const progress: Progress = {
    system: [],
    systemCache: [],
    turns: [],
    leftOut: new Set(),
    toolNames: new Map(),
    results: null,
    functionCalls: new FunctionCalls(),
    unnamedResults: new Map(),
    messages: objectsOf(messages),
  };
  progress.messages.forEach((message, index) => {
    decodeMessage(message, `messages[${index}]`, index, progress);
  });
  return progress;
}

function decodeMessage(message: JsonObject, at: string, index: number, progress: Progress): void {
  const { role, content } = message;
  if (role === 'tool' || role === 'function') {
    addResult(message, at, progress);
    return;
  }
  progress.results = null;
  if (role === 'user') {
    const parts = markedAtEnd(decodeContent(content, `${at}.content`, userPart), message);
    if (parts.length > 0) progress.turns.push({ role, parts });
  } else if (role === 'assistant') {
    const parts = markedAtEnd(decodeAssistant(message, at, index, progress), message);
    if (parts.length > 0) progress.turns.push({ role, parts });
  } else if (role === 'system' || role === 'developer') {
    const parts = decodeContent(content, `${at}.content`, textPart).filter(isNotEmpty);
    addInstructions(markedAtEnd(parts, message), progress);
  } else {
    throw untranslatable(at, `with the role '${nameOfType(role)}'`);
  }
}

function addInstructions(parts: readonly TextPart[], { system, systemCache, turns }: Progress): void {
  const last = parts.at(-1);
  if (turns.length === 0) {
    system.push(...parts.map(({ text }) => text));
    systemCache.push(...parts.map(({ cache }) => cache ?? null));
  } else if (last !== undefined) {
    const text = parts.map((part) => part.text).join('\n\n');
    turns.push(marked<Turn & Cacheable>({ role: 'system', text }, last.cache ?? null));
  }
}

function addResult(message: JsonObject, at: string, progress: Progress): void {
  const content = decodeContent(message.content, `${at}.content`, userPart);
  const legacy = message.role === 'function';
  const callId = legacy
    ? progress.functionCalls.take(message.name)
    : cutIdOf(message.tool_call_id) ||
      (progress.unnamedResults.get(message) ?? textOrNull(message.tool_call_id));
  if (callId === null) {
    throw legacy
      ? wrongValue(at, "the result of a 'function_call' before it that has none yet")
      : missingValue(`${at}.tool_call_id`, 'the id of the call that this is the result of');
  }
  const name = textOrNull(legacy ? message.name : null) ?? progress.toolNames.get(callId) ?? '';
  const result = markedAsWhole(
    { kind: 'toolResult', callId, name, content, isError: false, at },
    cacheMarkOf(message),
  );
  if (progress.results === null) {
    progress.results = [result];
    progress.turns.push({ role: 'user', parts: progress.results });
  } else {
    progress.results.push(result);
  }
}

function decodeAssistant(
  message: JsonObject,
  at: string,
  index: number,
  progress: Progress,
): AssistantPart[] {
  // Only the vendor that made the audio of an earlier answer has it.
  if (isObject(message.audio)) throw untranslatable(`${at}.audio`);
  const content = withoutThoughts(message.content);
  const parts: AssistantPart[] = decodeContent(content, `${at}.content`, assistantPart).filter(isNotEmpty);
  if (typeof message.refusal === 'string' && message.refusal !== '')
    parts.push({ kind: 'refusal', text: message.refusal });
  const calls = objectsOf(message.tool_calls);
  const decoded = calls.map((call, number) => {
    const carried = carriedReasoning(call);
    const id = textOf(call.id);
    if (carried.length === 0 && withoutOwnTokens(id) !== id) progress.leftOut.add('tool_calls.id');
    const part = decodeCall(call, `${at}.tool_calls[${number}]`, `call_${index}_${number}`);
    parts.push(...carried, part);
    return part;
  });
  if (calls.length > 0)
    addUnnamed(calls, decoded, resultsBehind(progress.messages, index), progress.unnamedResults);
  if (isObject(message.function_call)) {
    // This form has no ids: those of the call and its result are made from the position of the call.
    const call = functionCall(message.function_call, `function_call_${index}`, `${at}.function_call`);
    progress.functionCalls.add(call);
    parts.push(call);
  }
  for (const part of parts) if (part.kind === 'toolCall') progress.toolNames.set(part.id, part.name);
  return withReasoning(message, parts);
}

/** Returns the results behind a message with calls, up to the next one that has any. */
function resultsBehind(messages: readonly JsonObject[], index: number): readonly JsonObject[] {
  const results: JsonObject[] = [];
  for (let at = index + 1; at < messages.length; at++) {
    const { role, tool_calls: calls } = messages[at] as JsonObject;
    if (role === 'assistant' && objectsOf(calls).length > 0) break;
    if (role === 'tool') results.push(messages[at] as JsonObject);
  }
  return results;
}

/**
 * Adds the ids of the calls of a message that results without ids are of. Some servers give calls no ids, which clients repeat;
 * and Ollama and vLLM take results without an id, at most with the function's name. These are of the calls that no result names
 * if they are as many. Otherwise some are missing, and only those of calls that have no ids themselves are clear. Results that
 * name the function of such a call come first, wherever they stand; the others are in the order of the calls. A name that none
 * of them has leaves only the calls without ids, whose servers may not repeat it.
 * @param decoded the calls, in the same order
 */
function addUnnamed(
  calls: readonly JsonObject[],
  decoded: readonly ToolCallPart[],
  results: readonly JsonObject[],
  unnamedResults: Map<JsonObject, string>,
): void {
  const unnamed = results.filter((result) => !cutIdOf(result.tool_call_id));
  if (unnamed.length === 0) return;
  const named = new Set(results.map((result) => cutIdOf(result.tool_call_id) || null));
  const isClear = unnamed.length === decoded.filter(({ id }) => !named.has(id)).length;
  const byName = new Map<string, CallQueue>();
  const [all, withoutIds] = [newQueue(), newQueue()];
  for (const [number, { id, name }] of decoded.entries()) {
    const hasId = Boolean(cutIdOf(calls[number]?.id));
    if (isClear ? named.has(id) : hasId) continue;
    const call = { id, isAnswered: false };
    for (const queue of [entryOf(byName, name, newQueue), all, ...(hasId ? [] : [withoutIds])])
      queue.add(call);
  }
  const ofName = unnamed.map((result) => byName.get(textOf(result.name))?.take() ?? null);
  for (const [index, result] of unnamed.entries()) {
    const call = ofName[index] ?? (textOf(result.name) === '' ? all : withoutIds).take();
    if (call !== null) unnamedResults.set(result, call.id);
  }
}

/** Removes the thoughts that Mistral's clients send back among the texts: no other vendor takes them. */
function withoutThoughts(content: unknown): unknown {
  return Array.isArray(content)
    ? content.filter((part: unknown) => !isObject(part) || part.type !== 'thinking')
    : content;
}

function decodeCall(call: JsonObject, at: string, spareId: string): ToolCallPart {
  const id = cutIdOf(call.id) || spareId;
  const type = call.type ?? (isObject(call.custom) ? 'custom' : 'function');
  if (type === 'custom') {
    if (!isObject(call.custom)) throw wrongValue(`${at}.custom`, 'an object');
    const name = requireName(call.custom, `${at}.custom`);
    return { kind: 'toolCall', id, name, input: textOf(call.custom.input), custom: true, at };
  }
  if (type !== 'function') throw untranslatable(at, ofType(type));
  if (!isObject(call.function)) throw wrongValue(`${at}.function`, 'an object');
  return functionCall(call.function, id, at, `${at}.function`);
}

function functionCall(call: JsonObject, id: string, at: string, nameAt = at): ToolCallPart {
  const name = requireName(call, nameAt);
  const input = textOf(call.arguments);
  return { kind: 'toolCall', id, name, input: input.trim() === '' ? '{}' : input, custom: false, at };
}

/** Reads `tools` and the older `functions`. */
function decodeTools(body: JsonObject): { readonly tools: Tool[]; readonly hostedTools: HostedTool[] } {
  const tools: Tool[] = [];
  const hostedTools: HostedTool[] = [];
  for (const [index, tool] of objectsOf(body.tools).entries()) {
    const { type } = tool;
    if (type === 'function' || type === 'custom') {
      const definition = objectOf(tool[type]);
      tools.push(marked(decodeTool(definition, type), cacheMarkOf(tool) ?? cacheMarkOf(definition)));
    } else hostedTools.push({ type: nameOfType(type), at: `tools[${index}]` });
  }
  for (const definition of objectsOf(body.functions)) tools.push(decodeTool(definition, 'function'));
  return { tools, hostedTools };
}

/**
 * Reads `tool_choice` or, if it is not set, the older `function_call`.
 * @throws {GatewayError} of status 400 for a choice in none of the documented forms
 */
function decodeToolChoice(body: JsonObject): ToolChoice | null {
  const choice = body.tool_choice ?? null;
  if (choice === null) return functionCallChoice(body.function_call);
  if (choice === 'none' || choice === 'auto' || choice === 'required') return { mode: choice };
  // Mistral's clients (https://docs.mistral.ai/capabilities/function_calling).
  if (choice === 'any') return { mode: 'required' };
  if (!isObject(choice))
    throw wrongValue('tool_choice', "'none', 'auto', 'required' or an object that names a tool");
  if (choice.type === 'function' || choice.type === 'custom')
    return { mode: 'named', name: chosenName(choice, choice.type, 'tool_choice') };
  if (choice.type === 'allowed_tools') return allowedTools(choice.allowed_tools);
  throw untranslatable('tool_choice', ofType(choice.type));
}

function functionCallChoice(choice: unknown): ToolChoice | null {
  if (choice === undefined || choice === null) return null;
  if (choice === 'none' || choice === 'auto') return { mode: choice };
  if (isObject(choice)) return { mode: 'named', name: requireName(choice, 'function_call') };
  throw wrongValue('function_call', "'none', 'auto' or an object with the function's name");
}

function allowedTools(allowed: unknown): ToolChoice {
  const at = 'tool_choice.allowed_tools';
  if (!isObject(allowed)) throw wrongValue(at, 'an object');
  if (allowed.mode !== 'auto' && allowed.mode !== 'required')
    throw wrongValue(`${at}.mode`, "'auto' or 'required'");
  if (!Array.isArray(allowed.tools)) throw wrongValue(`${at}.tools`, 'an array');
  const names = allowed.tools.map((tool: unknown, index) => {
    const toolAt = `${at}.tools[${index}]`;
    if (!isObject(tool)) throw wrongValue(toolAt, 'an object');
    if (tool.type !== 'function' && tool.type !== 'custom') throw untranslatable(toolAt, ofType(tool.type));
    return chosenName(tool, tool.type, toolAt);
  });
  return { mode: 'allowed', names, required: allowed.mode === 'required' };
}

/** Returns the name of a choice. Some clients put it where the responses protocol has it: beside the type. */
function chosenName(choice: JsonObject, type: 'function' | 'custom', at: string): string {
  const inner = choice[type];
  return isObject(inner) ? requireName(inner, `${at}.${type}`) : requireName(choice, at);
}

function decodeTool(definition: JsonObject, type: 'function' | 'custom'): Tool {
  const name = textOf(definition.name);
  const description = textOrNull(definition.description);
  if (type === 'custom') {
    const custom = { format: inputFormat(definition.format) };
    return { name, description, parameters: null, strict: null, custom };
  }
  const parameters = isObject(definition.parameters) ? definition.parameters : null;
  return { name, description, parameters, strict: flagOrNull(definition.strict) };
}

/** Returns the format of a custom tool's input, with its grammar beside the type: `{type, syntax, definition}`. */
function inputFormat(format: unknown): JsonObject | null {
  if (!isObject(format) || format.type === 'text') return null;
  return isObject(format.grammar) ? { type: format.type, ...format.grammar } : format;
}

/**
 * Returns the parts of a message. The last one gets the message's own mark: clients of chat send `cache_control` for
 * messages upstreams on a part, on a message, on a tool or on its function. Sources:
 * https://openrouter.ai/docs/guides/best-practices/prompt-caching,
 * https://docs.litellm.ai/docs/completion/prompt_caching
 */
function markedAtEnd<Part extends object>(parts: readonly Part[], message: JsonObject): Part[] {
  const cache = cacheMarkOf(message);
  const last = parts.at(-1);
  return cache === null || last === undefined ? [...parts] : [...parts.slice(0, -1), marked(last, cache)];
}

const newQueue = (): CallQueue => new CallQueue();

/** Calls without a result so far whose results contain at most the name of the function. */
class FunctionCalls {
  readonly #all = new CallQueue();
  readonly #byName = new Map<unknown, CallQueue>();

  add({ id, name }: Pick<ToolCallPart, 'id' | 'name'>): void {
    const call = { id, isAnswered: false };
    this.#all.add(call);
    entryOf(this.#byName, name, newQueue).add(call);
  }

  /**
   * @returns id of the first call of the function, or of the first call of all if none has the name; null if there are
   * no calls
   */
  take(name: unknown): string | null {
    return (this.#byName.get(name)?.take() ?? this.#all.take())?.id ?? null;
  }
}
