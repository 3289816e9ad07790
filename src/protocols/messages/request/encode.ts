import type { TargetOptions } from '../../../conversation/codec.js';
import { knownEffort } from '../../../conversation/effort.js';
import type { LeftOut } from '../../../conversation/left-out.js';
import type {
  AssistantPart,
  Cacheable,
  CacheMark,
  ContentPart,
  ConversationRequest,
  Effort,
  MediaPart,
  TextProtocolName,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
} from '../../../conversation/request.js';
import { leaveOut, settingName } from '../../../conversation/setting-names.js';
import { signatureFor } from '../../../conversation/signature.js';
import { toolParameters } from '../../../conversation/tool-parameters.js';
import type { GatewayError } from '../../../errors.js';
import { type JsonObject, quoted } from '../../../wire/json.js';
import { memberError, wholeOrNull } from '../../../wire/reading.js';
import { ofType, refuseUnsayable, unsupportedAt } from '../../unsupported.js';
import { legalCallId } from '../call-ids.js';
import { encodeSearch, searchName } from '../search-tool.js';

const samplingNames = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
] as const;

/** Stands for a setting that the protocol does not have. */
const jsonOnly =
  'Answer with a single valid JSON object and nothing else: no other text before or after it, no code fence.';
/** Least `top_p` that the upstream takes beside thinking. */
const leastThinkingTopP = 0.95;

/**
 * Writes the body of a messages request; see `TextCodec.encodeRequest`. Seed, penalties and verbosity are dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for what the protocol cannot say
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions, leftOut: LeftOut): string {
  refuseUnsayable(request, target, 'messages', ['candidates', 'logprobs', 'logitBias']);
  const { tools, toolChoice, forced } = encodeTools(request);
  const messages = encodeMessages(request);
  const mayThink = target.thinking === 'adaptive' ? !messages.isBegun : messages.mayThink;
  const { thinking, effort, maxTokens } = encodeThinking(request, target, mayThink && !forced);
  if (thinking === undefined && effort === undefined && wantsThinking(request))
    leaveOut(request, 'reasoning', leftOut);
  const settings = JSON.stringify({
    model: target.model,
    max_tokens: maxTokens,
    stream: request.stream || undefined,
    stop_sequences: request.stop.length > 0 ? request.stop : undefined,
    ...told(
      target.thinking === 'adaptive' ? {} : encodeSampling(request, thinking !== undefined),
      request,
      leftOut,
    ),
    metadata: request.user === null ? undefined : { user_id: request.user },
    thinking,
    output_config: encodeOutput(request, effort),
    system: encodeSystem(request),
    tools,
    tool_choice: toolChoice,
  });
  return `${settings.slice(0, -1)},"messages":${messages.text}}`;
}

/**
 * Thinking goes with none of these. Newer models refuse temperature and `top_p` together: one that says no more than
 * its default is left out then, and where both say more the temperature alone is sent.
 */
function encodeSampling({ temperature, topP, topK }: ConversationRequest, thinks: boolean): JsonObject {
  if (thinks) return { top_p: topP !== null && topP >= leastThinkingTopP ? topP : undefined };
  // Both defaults are 1, which is as far as this protocol's temperature goes.
  const byTopP = temperature === null || (temperature >= 1 && topP !== null && topP < 1);
  return {
    temperature: byTopP ? undefined : Math.min(1, temperature),
    top_p: byTopP ? (topP ?? undefined) : undefined,
    top_k: wholeOrNull(topK) ?? undefined,
  };
}

/**
 * Tells which of the client's settings are not among those that are sent. Models that adapt their thinking refuse all of
 * them, whether they think or not (https://platform.claude.com/docs/en/about-claude/models/migration-guide).
 */
function told(sampling: JsonObject, request: ConversationRequest, leftOut: LeftOut): JsonObject {
  for (const [name, setting] of samplingNames)
    if (sampling[name] === undefined && request[setting] !== null) leaveOut(request, setting, leftOut);
  return sampling;
}

function encodeOutput({ format }: ConversationRequest, effort: string | undefined): JsonObject | undefined {
  if (format?.kind === 'schema') return { effort, format: { type: 'json_schema', schema: format.schema } };
  return effort === undefined ? undefined : { effort };
}

function encodeSystem({ system, systemCache, format }: ConversationRequest): JsonObject[] | undefined {
  const blocks: JsonObject[] = system
    .map((text, index) => ({ type: 'text', text, cache_control: cacheControl(systemCache?.[index]) }))
    .filter(({ text }) => !isBlank(text));
  if (format?.kind === 'object') blocks.push({ type: 'text', text: jsonOnly });
  return blocks.length === 0 ? undefined : blocks;
}

interface EncodedThinking {
  readonly thinking: JsonObject | undefined;
  /** For `output_config`. */
  readonly effort: string | undefined;
  readonly maxTokens: number;
}

type Thoughtful = Exclude<Effort, 'none'>;

/** Tokens of thinking for each effort, where the model knows budgets alone. */
const budgets: Readonly<Record<Thoughtful, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_000,
};
/** The protocol's least. */
const leastBudget = 1024;
/** Tokens that are left for the answer beside the thinking, which counts against the limit. */
const answerTokens = 1024;

/**
 * Writes what the client asks of reasoning, and the limit of tokens with it. Thinking that is not wanted is left out:
 * some of the models that adapt refuse it as `disabled`, and those that think unasked do so least with a low effort
 * (https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking).
 * @param possible false where the rest of the request does not go with thinking: then there is none
 */
function encodeThinking(
  { reasoning, maxTokens }: ConversationRequest,
  target: TargetOptions,
  possible: boolean,
): EncodedThinking {
  const without = { thinking: undefined, effort: undefined, maxTokens: maxTokens ?? target.maxTokens };
  if (reasoning === null) return without;
  const { effort, show } = reasoning;
  if (target.thinking === 'adaptive') {
    if (effort === 'none') return { ...without, effort: 'low' };
    const thinking = { type: 'adaptive', display: show ? 'summarized' : 'omitted' };
    const word = effort === 'minimal' ? 'low' : (effort ?? undefined);
    return { ...without, thinking: possible ? thinking : undefined, effort: word };
  }
  const known = knownEffort(effort);
  const wanted = reasoning.budget ?? (known === null || known === 'none' ? null : budgets[known]);
  if (wanted === null || wanted <= 0) return without;
  const { budget, limit } = fit(Math.max(leastBudget, wanted), maxTokens, target.maxTokens);
  if (budget < leastBudget) return without;
  // The limit stays what it is in the turns that think.
  if (!possible) return { ...without, maxTokens: limit };
  // What is left out of the answer is not to come back either: its signature alone stands for it.
  const display = show ? undefined : 'omitted';
  return { ...without, thinking: { type: 'enabled', budget_tokens: budget, display }, maxTokens: limit };
}

/** An effort that only its vendor knows leaves it to the model how much it thinks. */
function wantsThinking({ reasoning }: ConversationRequest): boolean {
  if (reasoning === null) return false;
  return reasoning.budget === null
    ? (knownEffort(reasoning.effort) ?? 'none') !== 'none'
    : reasoning.budget > 0;
}

/** The budget must be below the limit. The client's own limit stands; a spare one gives way. */
function fit(
  wanted: number,
  maxTokens: number | null,
  spareLimit: number,
): { budget: number; limit: number } {
  if (maxTokens === null) return { budget: wanted, limit: Math.max(spareLimit, wanted + answerTokens) };
  return { budget: wanted < maxTokens ? wanted : maxTokens - answerTokens, limit: maxTokens };
}

/** Images that the protocol takes, by their media types. */
const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** What stands for a failed result that says nothing: the protocol wants a content beside `is_error`. */
const bareError = 'The tool failed.';

/** True for a text that the protocol refuses as a block: one without anything but white space. */
function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** The JSON text of a text block. */
export function encodeText(text: string): string {
  return `{"type":"text","text":${quoted(text)}}`;
}

/**
 * Writes the JSON text of a block of a user's message.
 * @throws {GatewayError} of status 400 for media that the protocol has no block for
 */
function encodeBlock(part: ContentPart): string {
  if (part.kind === 'text') return encodeText(part.text);
  if (part.kind === 'image') return encodeImage(part);
  if (part.kind === 'document') return encodeDocument(part);
  throw unsupportedAt(part.at, 'messages', `(${part.kind})`);
}

/**
 * Writes the JSON text of a `tool_result` block. A single text is its content as a string, anything else an array.
 * @throws {GatewayError} of status 400, as `encodeBlock`
 */
function encodeResult({ callId, content, isError }: ToolResultPart): string {
  let text = `{"type":"tool_result","tool_use_id":${JSON.stringify(legalCallId(callId))}`;
  const said = content.filter((part) => part.kind !== 'text' || !isBlank(part.text));
  const [first] = said;
  if (said.length === 1 && first?.kind === 'text') text += `,"content":${quoted(first.text)}`;
  else if (said.length > 0) text += `,"content":[${said.map(encodeBlock).join(',')}]`;
  else if (isError) text += `,"content":${JSON.stringify(bareError)}`;
  return isError ? `${text},"is_error":true}` : `${text}}`;
}

function encodeImage({ source, at }: MediaPart): string {
  if (source.kind === 'url') return `{"type":"image","source":${urlSource(source.url)}}`;
  if (!imageTypes.includes(source.mediaType)) throw unsupportedAt(at, 'messages', ofType(source.mediaType));
  return `{"type":"image","source":${dataSource(source.mediaType, source.data)}}`;
}

function encodeDocument({ source, name, at }: MediaPart): string {
  const title = name === null || name === '' ? '' : `,"title":${JSON.stringify(name)}`;
  if (source.kind === 'url') return `{"type":"document","source":${urlSource(source.url)}${title}}`;
  const { mediaType, data } = source;
  if (mediaType === 'application/pdf')
    return `{"type":"document","source":${dataSource(mediaType, data)}${title}}`;
  if (!mediaType.startsWith('text/') && mediaType !== 'application/json')
    throw unsupportedAt(at, 'messages', ofType(mediaType));
  const text = Buffer.from(data, 'base64').toString('utf8');
  return `{"type":"document","source":{"type":"text","media_type":"text/plain","data":${JSON.stringify(text)}}${title}}`;
}

function dataSource(mediaType: string, data: string): string {
  return `{"type":"base64","media_type":"${mediaType}","data":${quoted(data)}}`;
}

function urlSource(url: string): string {
  return `{"type":"url","url":${JSON.stringify(url)}}`;
}

interface EncodedMessages {
  /** JSON text of the array. */
  readonly text: string;
  /** An answer is begun in the request, which goes with no thinking. */
  readonly isBegun: boolean;
  /**
   * Thinking with a budget can be on: the upstream wants the turn whose calls have just been answered to begin with the
   * thinking that led to them, and none for an answer that is begun in the request.
   */
  readonly mayThink: boolean;
}

/** Turns of one role in a row are one message. */
type Message = UserMessage | AssistantMessage;

interface UserMessage {
  readonly role: 'user';
  readonly results: ToolResultPart[];
  readonly rest: ContentPart[];
}

interface AssistantMessage {
  readonly role: 'assistant';
  /** In the order in which it was written. */
  readonly spoken: Spoken[];
  readonly calls: ToolCallPart[];
}

/** A text, or the JSON text of a thinking block. */
type Spoken = (Cacheable & { readonly text: string }) | { readonly thinking: string };

/**
 * Writes `messages`. Instructions in the middle of the conversation become texts of the user where they stand;
 * reasoning is kept where an upstream of this protocol signed it. A message is written the same way in every later
 * request of the conversation.
 * @throws {GatewayError} of status 400, naming the client's field, for parts that the protocol cannot say, and for a
 * conversation that says nothing
 */
function encodeMessages(request: ConversationRequest): EncodedMessages {
  const messages = collect(request);
  trimPrefill(messages);
  if (messages.length === 0) throw nothingSaid(request.from);
  return {
    text: `[${messages.map(encodeMessage).join(',')}]`,
    isBegun: messages.at(-1)?.role !== 'user',
    mayThink: mayThink(messages),
  };
}

/** The 400 for a conversation that has instructions at the most. */
function nothingSaid(from: TextProtocolName): GatewayError {
  const param = settingName(from, 'prefill');
  return memberError(
    'invalid_value',
    param,
    `Invalid value for '${param}': this model needs at least one message of the user that is not empty. ` +
      'Send a message of the user for the model to answer.',
  );
}

function collect({ turns }: ConversationRequest): Message[] {
  const messages: Message[] = [];
  for (const turn of turns) {
    if (turn.role === 'system') {
      if (!isBlank(turn.text))
        userMessage(messages).rest.push({ kind: 'text', text: turn.text, cache: turn.cache });
    } else if (turn.role === 'user') {
      for (const part of turn.parts) {
        if (part.kind === 'toolResult') userMessage(messages).results.push(part);
        else if (part.kind !== 'text' || !isBlank(part.text)) userMessage(messages).rest.push(part);
      }
    } else {
      for (const part of turn.parts) addAssistantPart(messages, part);
    }
  }
  return messages;
}

function userMessage(messages: Message[]): UserMessage {
  const last = messages.at(-1);
  if (last?.role === 'user') return last;
  const message: UserMessage = { role: 'user', results: [], rest: [] };
  messages.push(message);
  return message;
}

function assistantMessage(messages: Message[]): AssistantMessage {
  const last = messages.at(-1);
  if (last?.role === 'assistant') return last;
  const message: AssistantMessage = { role: 'assistant', spoken: [], calls: [] };
  messages.push(message);
  return message;
}

function addAssistantPart(messages: Message[], part: AssistantPart): void {
  if (part.kind === 'toolCall') {
    assistantMessage(messages).calls.push(part);
  } else if (part.kind === 'reasoning') {
    const signature = signatureFor('messages', part.signature);
    if (signature === null) return;
    const value = JSON.stringify(signature.value);
    const words = signature.words ?? part.text;
    // The vendor refuses a signature beside other words than it signed, and none are other words.
    if (signature.isWordless && words === '') return;
    const thinking = signature.redacted
      ? `{"type":"redacted_thinking","data":${value}}`
      : `{"type":"thinking","thinking":${JSON.stringify(words)},"signature":${value}}`;
    assistantMessage(messages).spoken.push({ thinking });
  } else if (part.kind === 'text' || part.kind === 'refusal') {
    if (!isBlank(part.text)) assistantMessage(messages).spoken.push(part);
  } else {
    throw unsupportedAt(part.at, 'messages', `(${part.kind} of the assistant)`);
  }
}

/** The upstream goes on where a last message of the assistant ends: it wants no white space there, and no thinking. */
function trimPrefill(messages: Message[]): void {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return;
  const texts = last.spoken.filter((each) => 'text' in each);
  const final = texts.pop();
  last.spoken.length = 0;
  last.spoken.push(...texts);
  if (final !== undefined) last.spoken.push({ ...final, text: final.text.trimEnd() });
  if (last.spoken.length === 0 && last.calls.length === 0) messages.pop();
}

function mayThink(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'user') return false;
  const answered = messages.at(-2);
  if (last.results.length === 0 || answered?.role !== 'assistant') return true;
  const [first] = answered.spoken;
  return first !== undefined && 'thinking' in first;
}

function encodeMessage(message: Message): string {
  const blocks =
    message.role === 'user'
      ? [
          ...message.results.map((part) => withCacheControl(encodeResult(part), part)),
          ...message.rest.map((part) => withCacheControl(encodeBlock(part), part)),
        ]
      : [
          ...message.spoken.map((each) =>
            'text' in each ? withCacheControl(encodeText(each.text), each) : each.thinking,
          ),
          ...message.calls.map((part) => withCacheControl(encodeCall(part), part)),
        ];
  return `{"role":"${message.role}","content":[${blocks.join(',')}]}`;
}

/** The arguments are passed on as they were written: so large numbers keep all their digits. */
function encodeCall({ id, name, input }: ToolCallPart): string {
  return `{"type":"tool_use","id":${JSON.stringify(legalCallId(id))},"name":${JSON.stringify(name)},"input":${input}}`;
}

interface EncodedTools {
  /** Undefined where there are none. */
  readonly tools: readonly JsonObject[] | undefined;
  readonly toolChoice: JsonObject | undefined;
  /** The answer must be a call, which the upstream does not allow beside thinking. */
  readonly forced: boolean;
}

/** Writes `tools` and `tool_choice`. A choice among some of the tools leaves out the others. */
function encodeTools(request: ConversationRequest): EncodedTools {
  // The upstream refuses a choice where there is nothing to choose from.
  const { search } = request;
  if (request.tools.length === 0 && search === undefined)
    return { tools: undefined, toolChoice: undefined, forced: false };
  const choice = presentChoice(request);
  const chosen = choice?.mode === 'allowed' ? new Set(choice.names) : null;
  const tools = chosen === null ? request.tools : request.tools.filter(({ name }) => chosen.has(name));
  const toolChoice = encodeToolChoice(choice, request.parallelCalls);
  const forced = toolChoice?.type === 'any' || toolChoice?.type === 'tool';
  // The last tool may bear the mark up to which the prompt is cached.
  const searches = search === undefined ? [] : [encodeSearch(search)];
  return { tools: [...searches, ...tools.map(encodeTool)], toolChoice, forced };
}

/**
 * Leaves out of a choice the names that no tool has, since they may be of tools that were dropped: null for one that
 * names no other.
 */
function presentChoice({ tools, toolChoice, search }: ConversationRequest): ToolChoice | null {
  if (search?.forced === true) return { mode: 'named', name: searchName };
  if (toolChoice?.mode !== 'named' && toolChoice?.mode !== 'allowed') return toolChoice;
  const known = new Set(tools.map(({ name }) => name));
  if (toolChoice.mode === 'named') return known.has(toolChoice.name) ? toolChoice : null;
  const names = toolChoice.names.filter((name) => known.has(name));
  return names.length === 0 ? null : { ...toolChoice, names };
}

function encodeTool({ name, description, parameters, strict, cache }: Tool): JsonObject {
  return {
    name,
    description: description ?? undefined,
    input_schema: toolParameters(parameters),
    strict: strict === true ? true : undefined,
    cache_control: cacheControl(cache),
  };
}

function encodeToolChoice(choice: ToolChoice | null, parallelCalls: boolean | null): JsonObject | undefined {
  const single = parallelCalls === false ? true : undefined;
  switch (choice?.mode) {
    case undefined:
      return single === undefined ? undefined : { type: 'auto', disable_parallel_tool_use: true };
    case 'none':
      return { type: 'none' };
    case 'named':
      return { type: 'tool', name: choice.name, disable_parallel_tool_use: single };
    case 'required':
      return { type: 'any', disable_parallel_tool_use: single };
    case 'auto':
      return { type: 'auto', disable_parallel_tool_use: single };
    case 'allowed':
      return { type: choice.required ? 'any' : 'auto', disable_parallel_tool_use: single };
  }
}

/** The value of `cache_control`; undefined for what bears no mark. */
function cacheControl(cache: CacheMark | null | undefined): JsonObject | undefined {
  if (!cache) return undefined;
  return cache.ttl === null ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: cache.ttl };
}

/**
 * Writes the mark of a part into its block.
 * @param block JSON text of an object
 */
function withCacheControl(block: string, { cache }: Cacheable): string {
  const control = cacheControl(cache);
  return control === undefined ? block : `${block.slice(0, -1)},"cache_control":${JSON.stringify(control)}}`;
}
