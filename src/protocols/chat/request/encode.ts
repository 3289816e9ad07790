import type { TargetOptions } from '../../../conversation/codec.js';
import type { LeftOut } from '../../../conversation/left-out.js';
import { urlOfMedia } from '../../../conversation/media-source.js';
import type {
  CacheMark,
  ContentPart,
  ConversationRequest,
  MediaPart,
  OutputFormat,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
} from '../../../conversation/request.js';
import { toolParameters } from '../../../conversation/tool-calls.js';
import { opaqueIn, type ReasoningName, unsignedReasoning } from '../../../conversation/unsigned-reasoning.js';
import { type JsonObject, listOf, objectOf, parseJson, wholeOrNull } from '../../../wire/json.js';
import { quoted } from '../../../wire/quoted.js';
import { systemParts, withBreakpoint } from '../../openai-shared/cache-breakpoint.js';
import { fileNameOf, textOfDocument } from '../../openai-shared/file-part.js';
import { chatCallId, userId } from '../../openai-shared/hashed-id.js';
import { encodeSchema, encodeServing, member } from '../../openai-shared/settings.js';
import { ofType, refuseUnsupported, unsupportedAt } from '../../unsupported.js';
import { extraContent } from '../carried.js';
import { encodeSearch } from '../search-options.js';

/**
 * Writes the body of a chat request; see `TextCodec.encodeRequest`. `top_k` is not part of the protocol, but some
 * servers take it.
 * @throws {GatewayError} of status 400, naming the client's field, for what the protocol cannot express
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions, leftOut: LeftOut): string {
  const { stop, tools, toolChoice, logprobs } = request;
  refuseUnsupported(request, target, 'chat', []);
  // Upstreams refuse settings of tools without tools, and hosted tools may just have been dropped.
  const withTools = tools.length > 0;
  return (
    `{"model":${JSON.stringify(target.model)}` +
    streaming(request, target) +
    member(target.maxTokensField, request.maxTokens) +
    member('temperature', request.temperature) +
    member('top_p', request.topP) +
    member('top_k', target.topK ? wholeOrNull(request.topK) : null) +
    member('n', request.candidates > 1 ? request.candidates : null) +
    member('stop', stop.length > 0 ? stop : null) +
    member('seed', request.seed) +
    member('presence_penalty', request.presencePenalty) +
    member('frequency_penalty', request.frequencyPenalty) +
    member('logit_bias', request.logitBias) +
    member('logprobs', logprobs === null ? null : true) +
    member('top_logprobs', logprobs || null) +
    member('user', request.user === null ? null : userId(request.user)) +
    serving(request, leftOut) +
    member('verbosity', request.verbosity) +
    member('reasoning_effort', request.reasoning?.effort ?? null) +
    member('response_format', request.format === null ? null : encodeFormat(request.format)) +
    member('tools', withTools ? tools.map(encodeTool) : null) +
    member('tool_choice', withTools ? (encodeToolChoice(toolChoice, tools) ?? null) : null) +
    member('parallel_tool_calls', withTools ? request.parallelCalls : null) +
    member('web_search_options', request.search === undefined ? null : encodeSearch(request.search)) +
    `,"messages":[${encodeMessages(request, target).join(',')}]}`
  );
}

function streaming({ stream }: ConversationRequest, { streamUsage }: TargetOptions): string {
  if (!stream) return '';
  return streamUsage ? ',"stream":true,"stream_options":{"include_usage":true}' : ',"stream":true';
}

/**
 * Writes the members about storage and service. OpenAI takes metadata in chat only beside `store`, whose default in
 * responses is true. Source: the vendor's error message, "The 'metadata' parameter is only allowed when 'store' is
 * enabled."
 */
function serving({ serving: given, stored }: ConversationRequest, leftOut: LeftOut): string {
  const serving = ownServing(given, leftOut);
  if (serving?.metadata === undefined && stored !== true) return encodeServing(serving);
  if (stored !== false) return `,"store":true${encodeServing(serving)}`;
  leftOut.add('metadata');
  return encodeServing(serving, 'metadata');
}

/** Leaves out members and words that only responses has (https://developers.openai.com/api/docs/guides/prompt-caching). */
function ownServing(serving: JsonObject | undefined, leftOut: LeftOut): JsonObject | undefined {
  const { service_tier: tier, prompt_cache_options: options } = serving ?? {};
  const isTierLost = tier === 'ultrafast';
  if (!isTierLost && options === undefined) return serving;
  if (isTierLost) leftOut.add('service_tier');
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(objectOf(options))) {
    if (name === 'mode' || (name === 'ttl' && value === chatLifetime)) kept[name] = value;
    else if (value !== null && value !== false) leftOut.add(`prompt_cache_options.${name}`);
  }
  return {
    ...serving,
    service_tier: isTierLost ? undefined : tier,
    prompt_cache_options: Object.keys(kept).length === 0 ? undefined : kept,
  };
}

/** The only lifetime in chat. */
const chatLifetime = '30m';

function encodeFormat(format: OutputFormat): JsonObject {
  if (format.kind === 'object') return { type: 'json_object' };
  return { type: 'json_schema', json_schema: encodeSchema(format) };
}

/** The protocol's names of audio formats, by media type. */
const audioFormats: Readonly<Record<string, string>> = {
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/wave': 'wav',
  'audio/vnd.wave': 'wav',
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
};

/**
 * Writes the JSON text of the content of a user's message: a string for a single text, else an array of parts.
 * @throws {GatewayError} of status 400 for media without a part in the protocol
 */
function encodeUserContent(parts: readonly ContentPart[], isMarked: boolean): string {
  const [first] = parts;
  if (parts.length === 1 && first?.kind === 'text') return textContent(first.text, isMarked, first.cache);
  const texts = parts.map((part) => {
    const text = part.kind === 'text' ? textPart(part.text) : mediaPart(part);
    return isMarked ? withBreakpoint(text, part.cache) : text;
  });
  return `[${texts.join(',')}]`;
}

function textPart(text: string): string {
  return `{"type":"text","text":${quoted(text)}}`;
}

/**
 * Writes the content of a message that is one text: a string, or a part that may have a mark. Marks move on with a
 * conversation, and what they leave must keep its bytes.
 */
function textContent(text: string, isMarked: boolean, mark: CacheMark | null | undefined): string {
  return isMarked ? `[${withBreakpoint(textPart(text), mark)}]` : quoted(text);
}

function mediaPart(part: MediaPart): string {
  const { kind, source, at } = part;
  if (kind === 'image') {
    const detail = part.detail === null ? '' : `,"detail":${JSON.stringify(part.detail)}`;
    return `{"type":"image_url","image_url":{"url":${quoted(urlOfMedia(source))}${detail}}}`;
  }
  if (kind === 'video') throw unsupportedAt(at, 'chat', '(a video)');
  if (source.kind === 'url')
    throw unsupportedAt(at, 'chat', `(${kind === 'audio' ? 'audio' : 'a document'} by URL)`);
  if (kind === 'document') {
    const text = textOfDocument(part);
    if (text !== null) return `{"type":"text","text":${quoted(text)}}`;
    return `{"type":"file","file":{"filename":${JSON.stringify(fileNameOf(part))},"file_data":${quoted(urlOfMedia(source))}}}`;
  }
  const format = audioFormats[source.mediaType];
  if (format === undefined) throw unsupportedAt(at, 'chat', ofType(source.mediaType));
  return `{"type":"input_audio","input_audio":{"data":${quoted(source.data)},"format":"${format}"}}`;
}

/**
 * Writes each message as JSON text. Reasoning is sent back to the model that wrote it, under the name of its original
 * member.
 * @throws {GatewayError} of status 400, naming the client's field, for parts that the protocol cannot express
 */
function encodeMessages(
  { system, systemCache, turns }: ConversationRequest,
  { model, cacheBreakpoints: isMarked }: TargetOptions,
): string[] {
  const messages: string[] = [];
  if (system.length > 0)
    messages.push(
      isMarked
        ? `{"role":"system","content":[${systemParts(system, systemCache).map(systemPart).join(',')}]}`
        : systemMessage(system.join('\n\n'), false, null),
    );
  const deferred: string[] = [];
  const written: Written = { deferred, model, isMarked };
  for (let index = 0; index < turns.length; ) {
    index =
      turns[index]?.role === 'assistant'
        ? addAssistantTurns(turns, index, messages, written)
        : addOtherTurns(turns, index, messages, written);
  }
  messages.push(...deferred);
  return messages;
}

interface Written {
  /** Instructions that stood between calls; they are written after the results. */
  readonly deferred: string[];
  /** The upstream's name of the model. */
  readonly model: string;
  /** Whether marks for its prompt cache are written. */
  readonly isMarked: boolean;
}

function systemPart({ text, cache }: { readonly text: string; readonly cache: CacheMark | null }): string {
  return withBreakpoint(textPart(text), cache);
}

function systemMessage(text: string, isMarked: boolean, mark: CacheMark | null | undefined): string {
  return `{"role":"system","content":${textContent(text, isMarked, mark)}}`;
}

/**
 * Writes the turns from `start` up to the next one of the assistant. Their results stand first: tool messages must
 * follow the calls that they answer immediately.
 * @returns the index after these turns
 */
function addOtherTurns(
  turns: readonly Turn[],
  start: number,
  messages: string[],
  { deferred, isMarked }: Written,
): number {
  const spoken = deferred.splice(0);
  let index = start;
  for (let turn = turns[index]; turn !== undefined && turn.role !== 'assistant'; turn = turns[++index]) {
    if (turn.role === 'system') {
      spoken.push(systemMessage(turn.text, isMarked, turn.cache));
      continue;
    }
    const rest: ContentPart[] = [];
    for (const part of turn.parts) {
      if (part.kind === 'toolResult') messages.push(toolMessage(part, rest, isMarked));
      else rest.push(part);
    }
    if (rest.length > 0) spoken.push(`{"role":"user","content":${encodeUserContent(rest, isMarked)}}`);
  }
  messages.push(...spoken);
  return index;
}

/** @param moved receives the media of the result, which a tool message cannot hold */
function toolMessage(result: ToolResultPart, moved: ContentPart[], isMarked: boolean): string {
  const callId = chatCallId(result.callId);
  const texts: string[] = [];
  const media: MediaPart[] = [];
  for (const part of result.content) {
    if (part.kind === 'text') texts.push(part.text);
    else media.push(part);
  }
  let text = texts.join('\n');
  if (media.length > 0) {
    moved.push({ kind: 'text', text: `Attachments of the result of tool call ${callId}:` }, ...media);
    if (text === '') text = 'See the attachments in the next user message.';
  }
  if (result.isError) text = `Error: ${text}`;
  return `{"role":"tool","tool_call_id":${JSON.stringify(callId)},"content":${textContent(text, isMarked, result.cache)}}`;
}

/**
 * Writes the assistant turn at `start`. The turns that follow a turn with tool calls are merged into it: their calls
 * must stand in one message, before the results.
 * @returns the index after these turns
 */
function addAssistantTurns(
  turns: readonly Turn[],
  start: number,
  messages: string[],
  { deferred, model, isMarked }: Written,
): number {
  let text: string | null = null;
  let refusal: string | null = null;
  const calls: string[] = [];
  const reasoning = new Map<ReasoningName, string>();
  const details: unknown[] = [];
  /** The signature for the next call. */
  let beside: string | null = null;
  let index = start;
  for (let turn = turns[index]; turn !== undefined && turn.role !== 'user'; turn = turns[++index]) {
    if (index > start && calls.length === 0) break;
    if (turn.role === 'system') {
      deferred.push(systemMessage(turn.text, isMarked, turn.cache));
      continue;
    }
    for (const part of turn.parts) {
      if (part.kind === 'text') text = (text ?? '') + part.text;
      else if (part.kind === 'refusal') refusal = (refusal ?? '') + part.text;
      else if (part.kind === 'toolCall') {
        calls.push(toolCall(part, beside));
        beside = null;
      } else if (part.kind === 'reasoning') {
        beside = opaqueIn('thought_signature', part, model) ?? beside;
        details.push(...listOf(parseJson(opaqueIn('reasoning_details', part, model) ?? '')));
        const own = unsignedReasoning(part, model);
        if (own !== null) reasoning.set(own.name, (reasoning.get(own.name) ?? '') + own.text);
      } else throw unsupportedAt(part.at, 'chat', `(${part.kind} of the assistant)`);
    }
  }
  if (text === null && refusal === null && calls.length === 0) return index;
  const refusalMember = refusal === null ? '' : `,"refusal":${quoted(refusal)}`;
  const called = calls.length === 0 ? '' : `,"tool_calls":[${calls.join(',')}]`;
  const thought = [...reasoning].map(([name, thoughts]) => `,"${name}":${quoted(thoughts)}`).join('');
  const detailed = details.length === 0 ? '' : `,"reasoning_details":${JSON.stringify(details)}`;
  const content = text === null ? 'null' : quoted(text);
  messages.push(`{"role":"assistant","content":${content}${refusalMember}${thought}${detailed}${called}}`);
  return index;
}

/** @param beside the signature beside the call, or null */
function toolCall({ id, name, input, custom }: ToolCallPart, beside: string | null): string {
  const type = custom ? 'custom' : 'function';
  const call = `"name":${JSON.stringify(name)},"${custom ? 'input' : 'arguments'}":${quoted(input)}`;
  return `{"id":${JSON.stringify(chatCallId(id))},"type":"${type}","${type}":{${call}}${extraContent(beside ?? undefined)}}`;
}

/** Writes one entry of `tools`. */
function encodeTool(tool: Tool): JsonObject {
  const { name, custom, strict } = tool;
  const description = tool.description ?? undefined;
  if (custom !== undefined)
    return { type: 'custom', custom: { name, description, format: inputFormat(custom.format) } };
  const parameters = toolParameters(tool.parameters);
  return { type: 'function', function: { name, description, parameters, strict: strict ?? undefined } };
}

/**
 * Writes `tool_choice`. A name without a tool may belong to one that was dropped: it is left out, and so is a choice
 * without any other name.
 * @param tools determine which names belong to custom tools, whose choice has another form
 */
function encodeToolChoice(
  choice: ToolChoice | null,
  tools: readonly Tool[],
): string | JsonObject | undefined {
  switch (choice?.mode) {
    case 'named':
      return named(tools.find(({ name }) => name === choice.name));
    case 'allowed': {
      const byName = new Map(tools.map((tool) => [tool.name, tool]));
      const allowed = choice.names
        .map((name) => named(byName.get(name)))
        .filter((each) => each !== undefined);
      const mode = choice.required ? 'required' : 'auto';
      return allowed.length === 0
        ? undefined
        : { type: 'allowed_tools', allowed_tools: { mode, tools: allowed } };
    }
    default:
      return choice?.mode;
  }
}

function named(tool: Tool | undefined): JsonObject | undefined {
  if (tool === undefined) return undefined;
  const { name, custom } = tool;
  return custom === undefined
    ? { type: 'function', function: { name } }
    : { type: 'custom', custom: { name } };
}

/**
 * Returns the format with its grammar in a separate member, as this protocol has it; see `inputFormat` in `decode.ts`.
 */
function inputFormat(format: JsonObject | null): JsonObject | undefined {
  if (format === null) return undefined;
  if (format.type !== 'grammar' || format.grammar !== undefined) return format;
  return { type: 'grammar', grammar: { syntax: format.syntax, definition: format.definition } };
}
