import { lastMark, marked, markedAsWhole } from '../../../conversation/cache-marks.js';
import { type CutId, cutId, hasLostTokens } from '../../../conversation/carrying-id.js';
import { compactionRequest } from '../../../conversation/compaction.js';
import { decodeMediaUrl } from '../../../conversation/media-source.js';
import type {
  AssistantPart,
  Cacheable,
  CacheMark,
  ContentPart,
  ConversationRequest,
  MediaSource,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../../conversation/request.js';
import { signatureOfWords } from '../../../conversation/signature.js';
import type { GatewayError } from '../../../errors.js';
import {
  flagOrNull,
  invalidValue,
  isList,
  isObject,
  type JsonObject,
  listOf,
  missingValue,
  numberOrNull,
  objectOf,
  textOf,
  textOrNull,
  wrongType,
} from '../../../wire/json.js';
import type { Sealer } from '../../../wire/seal.js';
import { breakpointOf } from '../../openai-shared/cache-breakpoint.js';
import { decodeFileData, filePartOf } from '../../openai-shared/file-part.js';
import { decodeServing, decodeUser, sparedUser } from '../../openai-shared/settings.js';
import { ofType, untranslatable } from '../../unsupported.js';
import { callIdOf, clientCallOf, clientOutputOf } from '../client-tools.js';
import { isCompaction, keptContents, openCompaction } from '../compact.js';
import { decodeConfiguration, updateType } from '../configuration.js';
import { nameOfItem, nameOfPart } from '../left-out.js';
import {
  clientTools,
  decodeTool,
  decodeToolChoice,
  foundTools,
  listTools,
  type ToolList,
  type ToolSource,
  upstreamName,
} from '../namespaces.js';
import { unreadOf } from '../read-members.js';
import { carriedReasoning } from '../reasoning.js';
import { isReference, referenceType } from '../references.js';
import { echoedSettings } from '../response.js';
import { decodeSearch } from '../search-item.js';

/**
 * Items of an input that declare tools: agents add some in the course of their work, and a search for tools finds some.
 */
const bringTools: readonly unknown[] = ['additional_tools', 'tool_search_output'];

/**
 * Returns the places where a body declares tools, in order of precedence.
 * @param body of `POST /v1/responses`, of any shape
 */
function toolSources({ tools, input }: JsonObject): ToolSource[] {
  const sources: ToolSource[] = [{ tools, at: 'tools' }];
  listOf(input).forEach((item, index) => {
    if (isObject(item) && bringTools.includes(item.type))
      sources.push({ tools: item.tools, at: `input[${index}].tools` });
  });
  return sources;
}

/**
 * Decodes the body of `POST /v1/responses`; see `TextCodec.decodeRequest`. An input that ends with a
 * `compaction_trigger` becomes a request for a summary.
 */
export function decodeRequest(body: JsonObject, stream: boolean, sealer: Sealer): ConversationRequest {
  const { request, wantsCompaction } = decodeBody(body, stream, sealer);
  return wantsCompaction ? compactionRequest(request, 'item') : request;
}

/** Members that a compaction uses. Clients also send the settings of their turns, which have no effect here. */
const compacted = [
  'input',
  'instructions',
  'previous_response_id',
  'tools',
  'safety_identifier',
  'user',
] as const;

/** Decodes the body of `POST /v1/responses/compact` as a request for a summary. */
export function decodeCompactRequest(
  body: JsonObject,
  _stream: boolean,
  sealer: Sealer,
): ConversationRequest {
  const { request } = decodeBody(pick(body, compacted), false, sealer);
  return { ...compactionRequest(request, 'object'), echo: { kept: keptContents(body.input) } };
}

function decodeBody(
  body: JsonObject,
  stream: boolean,
  sealer: Sealer,
): { readonly request: ConversationRequest; readonly wantsCompaction: boolean } {
  refuseServerState(body);
  const list = listTools(toolSources(body));
  const leftOut = new Set<string>();
  const input = new InputReader({ list, sealer, leftOut });
  input.readAll(body.input);
  const text = objectOf(body.text);
  const toolChoice = decodeToolChoice(body.tool_choice, list, leftOut);
  const instructions = [textOf(body.instructions)].filter((each) => each !== '');
  const request: ConversationRequest = {
    from: 'responses',
    stream,
    leftOut: [...leftOut, ...unreadOf(body), ...sparedUser(body)],
    system: [...instructions, ...input.system],
    systemCache: input.systemCache.some((mark) => mark !== null)
      ? [...instructions.map(() => null), ...input.systemCache]
      : undefined,
    turns: input.turns,
    tools: list.listed.map(decodeTool),
    clientTools: clientTools(list),
    hostedTools: list.hosted,
    search:
      list.search === null ? undefined : decodeSearch(list.search.tool, list.search.at, body.tool_choice),
    toolChoice,
    parallelCalls: flagOrNull(body.parallel_tool_calls),
    ...decodeConfiguration(body),
    // A request that only prepares the cache. Other protocols generate at least one token.
    maxTokens: isPrewarming(body) ? 1 : numberOrNull(body.max_output_tokens),
    temperature: numberOrNull(body.temperature),
    topP: numberOrNull(body.top_p),
    topK: null,
    stop: [],
    candidates: 1,
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
    logitBias: null,
    logprobs: includes(body, 'message.output_text.logprobs') ? (numberOrNull(body.top_logprobs) ?? 0) : null,
    verbosity: textOrNull(text.verbosity),
    ...decodeUser(body),
    serving: decodeServing(body),
    stored: flagOrNull(body.store) ?? undefined,
    returnsEncrypted: includes(body, 'reasoning.encrypted_content'),
    includeUsage: true,
    echo: pick(body, echoedSettings),
    compaction: null,
  };
  return { request, wantsCompaction: input.wantsCompaction };
}

/** Refuses what only an upstream of this protocol stores, and a body without an input. */
function refuseServerState(body: JsonObject): void {
  for (const member of ['previous_response_id', 'conversation', 'prompt']) {
    if ((body[member] ?? null) !== null) throw untranslatable(member);
  }
  if (body.background === true) throw untranslatable('background');
  if (Array.isArray(body.instructions)) throw untranslatable('instructions', 'as a list of items');
  if ((body.input ?? null) !== null) return;
  throw missingValue('input', 'a string or an array');
}

function isPrewarming({ prompt_cache_options: options }: JsonObject): boolean {
  return isObject(options) && options.prewarm === true;
}

function includes({ include }: JsonObject, name: string): boolean {
  return isList(include) && include.includes(name);
}

/** Returns those members with these names that are present. */
function pick(body: JsonObject, names: readonly string[]): JsonObject {
  const picked: Record<string, unknown> = {};
  for (const name of names) {
    const value = body[name] ?? null;
    if (value !== null) picked[name] = value;
  }
  return picked;
}

/**
 * Decodes the content of a user's message, or the output of a tool.
 * @param content a string or an array of input parts
 * @param at its path in the client's body
 * @param leftOut receives the names of parts that no other protocol has
 * @throws {GatewayError} naming a part that is not accepted
 */
function decodeContent(content: unknown, at: string, leftOut: Set<string>): ContentPart[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return takenParts(content, at, leftOut, (part, path) => {
    const decoded = decodePart(part, path);
    return decoded === null ? null : marked(decoded, breakpointOf(part));
  });
}

/** Decodes the content of a message of the assistant. */
function decodeAssistantContent(content: unknown, at: string, leftOut: Set<string>): AssistantPart[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return takenParts<AssistantPart>(content, at, leftOut, (part) => {
    if (isText(part)) return { kind: 'text', text: textOf(part.text) };
    return part.type === 'refusal' ? { kind: 'refusal', text: textOf(part.refusal) } : null;
  });
}

/** Returns the texts of a message that may contain nothing else, and the last cache mark in it. */
function textOfContent(content: unknown, at: string, leftOut: Set<string>): TextPart {
  if (typeof content === 'string') return { kind: 'text', text: content };
  const parts = takenParts<TextPart>(content, at, leftOut, (part) => {
    const text = isText(part) ? textOrNull(part.text) : null;
    return text === null ? null : marked<TextPart>({ kind: 'text', text }, breakpointOf(part));
  });
  return marked<TextPart>({ kind: 'text', text: parts.map(({ text }) => text).join('\n') }, lastMark(parts));
}

/** @param take returns null for a part that is left out */
function takenParts<Part>(
  content: unknown,
  at: string,
  leftOut: Set<string>,
  take: (part: JsonObject, at: string) => Part | null,
): Part[] {
  const taken: Part[] = [];
  partsOf(content, at).forEach((part, index) => {
    const found = take(part, `${at}[${index}]`);
    if (found !== null) taken.push(found);
    else leftOut.add(nameOfPart(part.type));
  });
  return taken;
}

/**
 * Returns the parts of a content that is not a string.
 * @throws {GatewayError} for anything but an array of objects
 */
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

/** @returns null for a part of an unknown type */
function decodePart(part: JsonObject, at: string): ContentPart | null {
  if (isText(part)) return { kind: 'text', text: textOf(part.text) };
  switch (part.type) {
    case 'input_image':
      return {
        kind: 'image',
        source: imageSource(part, at),
        detail: textOrNull(part.detail),
        name: null,
        at,
      };
    case 'input_file':
      return filePartOf(fileSource(part, at), textOrNull(part.filename), at);
    default:
      return null;
  }
}

function imageSource(part: JsonObject, at: string): MediaSource {
  const url = textOf(part.image_url);
  if (url === '') throw noSource(part, at, 'image_url');
  return decodeMediaUrl(url, `${at}.image_url`);
}

function fileSource(part: JsonObject, at: string): MediaSource {
  const data = textOf(part.file_data);
  if (data !== '') return decodeFileData(data, textOrNull(part.filename), `${at}.file_data`);
  const url = textOf(part.file_url);
  if (url === '') throw noSource(part, at, 'file_data');
  return decodeMediaUrl(url, `${at}.file_url`);
}

function noSource(part: JsonObject, at: string, member: string): GatewayError {
  if (typeof part.file_id === 'string' && part.file_id !== '') return untranslatable(`${at}.file_id`);
  return missingValue(`${at}.${member}`, 'the bytes or the URL of what is sent');
}

/** What is needed to read the items of an input. */
interface InputContext {
  /** The client's tools: calls contain the client's names. */
  readonly list: ToolList;
  readonly sealer: Sealer;
  /** Receives the names of what is left out. */
  readonly leftOut: Set<string>;
}

/** Decodes `input`. Adjacent items of the assistant become one turn, as do adjacent outputs of its calls. */
class InputReader {
  /** Texts of the instructions before the first turn. */
  readonly system: string[] = [];
  /** Cache marks of these texts. */
  readonly systemCache: (CacheMark | null)[] = [];
  readonly turns: Turn[] = [];
  /** The input ends with a request for a compaction. */
  wantsCompaction = false;
  readonly #context: InputContext;
  /** Names of the calls so far, by their ids: an output does not name its tool. */
  readonly #called = new Map<string, string>();
  /** Ids of a shell's calls by those of their items, which some clients send instead. */
  readonly #shellCalls = new Map<unknown, string>();
  /** Parts of the last turn, while other items may be added to it. */
  #assistant: AssistantPart[] | null = null;
  #results: UserPart[] | null = null;

  constructor(context: InputContext) {
    this.#context = context;
  }

  /** @throws {GatewayError} naming an item that is not accepted */
  readAll(input: unknown): void {
    if (typeof input === 'string') this.#turn(userTurn([{ kind: 'text', text: input }]));
    const items = listOf(input);
    items.forEach((item, index) => {
      const at = `input[${index}]`;
      if (!isObject(item)) throw wrongType(at, 'an object');
      if (item.type !== 'compaction_trigger') this.#item(item, at);
      else if (index === items.length - 1) this.wantsCompaction = true;
      else throw invalidValue(at, `an item of type 'compaction_trigger' must be the last one`);
    });
  }

  #item(item: JsonObject, at: string): void {
    if (isReference(item)) throw untranslatable(at, ofType(referenceType));
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
        this.#call(item, { input: textOf(item.input), custom: true, at });
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#functionOutput(item, at);
        break;
      case 'reasoning':
        this.#reasoning(item);
        break;
      case 'additional_tools':
      case updateType:
        break;
      default:
        if (!this.#clientTool(item, at) && !this.#compaction(item))
          this.#context.leftOut.add(nameOfItem(item.type));
    }
  }

  #content(content: unknown, at: string): ContentPart[] {
    return decodeContent(content, at, this.#context.leftOut);
  }

  /** @returns false for an item of any tool that is not a function in other protocols */
  #clientTool(item: JsonObject, at: string): boolean {
    const { list } = this.#context;
    const call = clientCallOf(item);
    if (call !== null) {
      const { type, input } = call;
      const { id, tokens } = cutId(call.id);
      if (type === 'local_shell') this.#shellCalls.set(item.id, id);
      this.#addCall({ id, name: list.typeNames.get(type) ?? type, input, custom: false, at }, tokens);
      return true;
    }
    const callId = callIdOf(item);
    if (callId === null) return false;
    const { id } = cutId(callId);
    if (item.type === 'tool_search_output') {
      this.#output(id, [{ kind: 'text', text: foundTools(list, item.tools) }], at);
      return true;
    }
    const said = clientOutputOf(item);
    if (said !== null) {
      this.#output(id, said === '' ? [] : [{ kind: 'text', text: said }], at);
      return true;
    }
    if (item.type !== 'local_shell_call_output') return false;
    this.#output(this.#shellCalls.get(id) ?? id, this.#content(item.output ?? '', `${at}.output`), at);
    return true;
  }

  /**
   * @returns false for an item that is not a compaction, and for a compaction that was not made here, which cannot be
   * read
   */
  #compaction(item: JsonObject): boolean {
    const text = isCompaction(item) ? openCompaction(item, this.#context.sealer) : null;
    if (text !== null) this.#turn(userTurn([{ kind: 'text', text }]));
    return text !== null;
  }

  #message(item: JsonObject, at: string): void {
    const { role, content, phase } = item;
    const path = `${at}.content`;
    const { leftOut } = this.#context;
    // No other protocol distinguishes commentary on the work from the answer.
    if (typeof phase === 'string') leftOut.add('phase');
    switch (role) {
      case 'system':
      case 'developer': {
        const { text, cache } = textOfContent(content, path, leftOut);
        if (text === '') break;
        if (this.turns.length > 0)
          this.#turn(marked<Turn & Cacheable>({ role: 'system', text }, cache ?? null));
        else {
          this.system.push(text);
          this.systemCache.push(cache ?? null);
        }
        break;
      }
      case 'user':
        this.#user(this.#content(content, path));
        break;
      case 'assistant':
        for (const part of decodeAssistantContent(content, path, leftOut)) this.#part(part);
        break;
      default:
        leftOut.add(nameOfItem(item.type));
    }
  }

  /** Ignores a message without remaining content. */
  #user(parts: UserPart[]): void {
    if (parts.length > 0) this.#turn(userTurn(parts));
  }

  #call(item: JsonObject, call: { input: string; custom: boolean; at: string }): void {
    const cut = requireCallId(item, call.at);
    const { id, tokens } = cut;
    if (hasLostTokens(textOf(item.call_id), cut)) this.#context.leftOut.add('call_id');
    if (typeof item.name !== 'string') throw missingValue(`${call.at}.name`, 'a string');
    this.#addCall({ id, name: upstreamName(this.#context.list, item.namespace, item.name), ...call }, tokens);
  }

  /** @param tokens carried in the call's id: their reasoning stands before the call */
  #addCall(call: Omit<ToolCallPart, 'kind'>, tokens: readonly string[]): void {
    this.#called.set(call.id, call.name);
    for (const signature of tokens) this.#carried({ kind: 'reasoning', text: '', signature });
    this.#part({ kind: 'toolCall', ...call });
  }

  /**
   * An upstream that signs words needs the reasoning that it signed before the first call at the start of the turn,
   * before its texts.
   */
  #carried(part: ReasoningPart): void {
    const parts = this.#assistant ?? [];
    const isLeading = signatureOfWords(part.signature) !== null && parts.every(isNoCall);
    const at = isLeading ? parts.findIndex(({ kind }) => kind !== 'reasoning') : -1;
    if (at === -1) this.#part(part);
    else parts.splice(at, 0, part);
  }

  /** An output may belong to no call of the conversation, and name its tool instead. */
  #functionOutput(item: JsonObject, at: string): void {
    const { name, namespace } = item;
    const callId = textOf(item.call_id);
    const content = this.#content(item.output, `${at}.output`);
    if (callId !== '') this.#output(cutId(callId).id, content, at);
    else this.#output('', content, at, upstreamName(this.#context.list, namespace, textOf(name)));
  }

  /** @param ownName of the tool, if no call has its name */
  #output(callId: string, content: ToolResultPart['content'], at: string, ownName = ''): void {
    const name = this.#called.get(callId) ?? ownName;
    const result = markedAsWhole({ kind: 'toolResult', callId, name, content, isError: false, at }, null);
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

function isNoCall({ kind }: AssistantPart): boolean {
  return kind !== 'toolCall';
}

function userTurn(parts: UserPart[]): Turn {
  return { role: 'user', parts };
}

/** Joins the texts of a reasoning item's parts with blank lines. */
export function joinedTexts(parts: unknown): string {
  if (!Array.isArray(parts)) return '';
  const texts = parts.map((part) => (isObject(part) ? textOf(part.text) : ''));
  return texts.filter((text) => text !== '').join('\n\n');
}

function requireCallId(item: JsonObject, at: string): CutId {
  if (typeof item.call_id === 'string' && item.call_id !== '') return cutId(item.call_id);
  throw missingValue(`${at}.call_id`, 'a non-empty string');
}
