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
  Reasoning,
  TextPart,
  TextProtocolName,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
} from '../../../conversation/request.js';
import { leaveOut, settingName } from '../../../conversation/setting-names.js';
import { signatureFor } from '../../../conversation/signature.js';
import { toolParameters } from '../../../conversation/tool-calls.js';
import type { GatewayError } from '../../../errors.js';
import { type JsonObject, memberError, wholeOrNull } from '../../../wire/json.js';
import { quoted } from '../../../wire/quoted.js';
import { ofType, refuseUnsupported, unsupportedAt } from '../../unsupported.js';
import { legalCallId } from '../call-ids.js';
import { encodeSearch, searchName } from '../search-blocks.js';

const samplingNames = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
] as const;

/** Marks a setting that the protocol does not have. */
const jsonOnly =
  'Answer with a single valid JSON object and nothing else: no other text before or after it, no code fence.';
/** Least `top_p` that the upstream takes beside thinking. */
const leastThinkingTopP = 0.95;

/**
 * Writes the body of a messages request; see `TextCodec.encodeRequest`. Seed, penalties and verbosity are dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for what the protocol cannot express
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions, leftOut: LeftOut): string {
  refuseUnsupported(request, target, 'messages', ['candidates', 'logprobs', 'logitBias']);
  const { tools, toolChoice, forced, demand } = encodeTools(request, target, leftOut);
  const messages = encodeMessages(request, target, demand);
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
 * Writes the sampling settings. None of them is allowed beside thinking. Newer models refuse temperature together with
 * `top_p`: the one that has its default value is left out. If neither has, only the temperature is sent.
 */
function encodeSampling({ temperature, topP, topK }: ConversationRequest, thinks: boolean): JsonObject {
  if (thinks) return { top_p: topP !== null && topP >= leastThinkingTopP ? topP : undefined };
  // Both defaults are 1, which is also this protocol's highest temperature.
  const byTopP = temperature === null || (temperature >= 1 && topP !== null && topP < 1);
  return {
    temperature: byTopP ? undefined : Math.min(1, temperature),
    top_p: byTopP ? (topP ?? undefined) : undefined,
    top_k: wholeOrNull(topK) ?? undefined,
  };
}

/**
 * Records which of the client's settings are not sent. Models with adaptive thinking refuse all of them, whether they
 * think or not (https://platform.claude.com/docs/en/about-claude/models/migration-guide).
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
  /** The effort for `output_config`. */
  readonly effort: string | undefined;
  readonly maxTokens: number;
}

type Thoughtful = Exclude<Effort, 'none'>;

/** Thinking budget, in tokens, for each effort, for models that only have budgets. */
const budgets: Readonly<Record<Thoughtful, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_000,
};
/** The protocol's minimum. */
const leastBudget = 1024;
/** Tokens that remain for the answer beside the thinking, which counts against the same limit. */
const answerTokens = 1024;

/**
 * Writes the settings of reasoning, and the limit of tokens with them. Thinking that is not wanted is left out: some
 * adaptive models refuse `disabled`, and those that think by default think least with a low effort
 * (https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking).
 * @param possible false if the rest of the request does not allow thinking, which is then not requested
 */
function encodeThinking(
  { reasoning, maxTokens }: ConversationRequest,
  target: TargetOptions,
  possible: boolean,
): EncodedThinking {
  if (target.thinking === 'adaptive') return encodeAdaptive(reasoning, maxTokens, target, possible);
  const without = { thinking: undefined, effort: undefined, maxTokens: maxTokens ?? target.maxTokens };
  if (reasoning === null) return without;
  const { effort, show } = reasoning;
  const known = knownEffort(effort);
  const wanted = reasoning.budget ?? (known === null || known === 'none' ? null : budgets[known]);
  if (wanted === null || wanted <= 0) return without;
  const { budget, limit } = fit(Math.max(leastBudget, wanted), maxTokens, target.maxTokens);
  if (budget < leastBudget) return without;
  // The limit stays the same as in the turns with thinking.
  if (!possible) return { ...without, maxTokens: limit };
  // Reasoning that is not shown is not sent back either: its signature replaces it.
  const display = show ? undefined : 'omitted';
  return { ...without, thinking: { type: 'enabled', budget_tokens: budget, display }, maxTokens: limit };
}

/**
 * The same for a model that adapts. The default limit of tokens has room for the thinking of the effort. Most of these
 * models think unasked, and without an effort as with a high one.
 */
function encodeAdaptive(
  reasoning: Reasoning | null,
  maxTokens: number | null,
  target: TargetOptions,
  possible: boolean,
): EncodedThinking {
  const { effort, show } = reasoning ?? { effort: null, show: false };
  const word = effort === 'none' || effort === 'minimal' ? 'low' : (effort ?? undefined);
  const known = knownEffort(word ?? 'high');
  const budget = known === null || known === 'none' ? budgets.high : budgets[known];
  const thinks = possible && reasoning !== null && effort !== 'none';
  const display = thinks ? (show ? 'summarized' : 'omitted') : undefined;
  const binding = target.preservedThinking ? { prefix_mismatch_behavior: 'drop_block' } : undefined;
  // With preserved thinking a model adapts unasked, so that this alone changes nothing.
  const isSent = thinks || (possible && target.preservedThinking);
  return {
    thinking: isSent ? { type: 'adaptive', display, block_binding: binding } : undefined,
    effort: word,
    maxTokens: fit(budget, maxTokens, target.maxTokens).limit,
  };
}

/**
 * Tells whether the client wants thinking. With an effort that only its vendor knows, the model decides how much it
 * thinks.
 */
function wantsThinking({ reasoning }: ConversationRequest): boolean {
  if (reasoning === null) return false;
  return reasoning.budget === null
    ? (knownEffort(reasoning.effort) ?? 'none') !== 'none'
    : reasoning.budget > 0;
}

/** Fits the budget below the limit. The client's own limit stays; the default limit is raised if needed. */
function fit(
  wanted: number,
  maxTokens: number | null,
  spareLimit: number,
): { budget: number; limit: number } {
  if (maxTokens === null) return { budget: wanted, limit: Math.max(spareLimit, wanted + answerTokens) };
  return { budget: wanted < maxTokens ? wanted : maxTokens - answerTokens, limit: maxTokens };
}

/** Media types of the images that the protocol takes. */
const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** Content of a failed result without any: the protocol requires content beside `is_error`. */
const bareError = 'The tool failed.';

/** Tells whether a text has only white space: the protocol refuses it as a block. */
function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** Writes a text block as JSON text. */
export function encodeText(text: string): string {
  return `{"type":"text","text":${quoted(text)}}`;
}

/**
 * Writes a block of a user's message as JSON text.
 * @throws {GatewayError} of status 400 for media without a block in the protocol
 */
function encodeBlock(part: ContentPart): string {
  if (part.kind === 'text') return encodeText(part.text);
  if (part.kind === 'image') return encodeImage(part);
  if (part.kind === 'document') return encodeDocument(part);
  throw unsupportedAt(part.at, 'messages', `(${part.kind})`);
}

/**
 * Writes a `tool_result` block as JSON text. A single text is a string; other content is an array. The protocol allows
 * only texts beside `is_error`, so that of a result with media is a text.
 * @throws {GatewayError} of status 400, like `encodeBlock`
 */
function encodeResult({ callId, content, isError }: ToolResultPart): string {
  let text = `{"type":"tool_result","tool_use_id":${JSON.stringify(legalCallId(callId))}`;
  const said = content.filter((part) => part.kind !== 'text' || !isBlank(part.text));
  const [first] = said;
  const isSaid = isError && said.some(({ kind }) => kind !== 'text');
  if (isSaid) said.unshift({ kind: 'text', text: 'Error:' });
  if (said.length === 1 && first?.kind === 'text') text += `,"content":${quoted(first.text)}`;
  else if (said.length > 0) text += `,"content":[${said.map(encodeBlock).join(',')}]`;
  else if (isError) text += `,"content":${JSON.stringify(bareError)}`;
  return isError && !isSaid ? `${text},"is_error":true}` : `${text}}`;
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
  /** The request contains the beginning of the answer, which does not allow thinking. */
  readonly isBegun: boolean;
  /**
   * Whether thinking with a budget is possible. The upstream requires the turn whose calls have just been answered to
   * begin with the thinking that led to them. It allows no thinking if the request contains the beginning of the
   * answer.
   */
  readonly mayThink: boolean;
}

/** A message holds the consecutive turns of one role. */
type Message = UserMessage | AssistantMessage;

interface UserMessage {
  readonly role: 'user';
  readonly results: ToolResultPart[];
  readonly rest: ContentPart[];
  /** Texts of a message of the system, which is behind it. */
  readonly instructions: TextPart[];
}

interface AssistantMessage {
  readonly role: 'assistant';
  /** The texts and thinking blocks, in their original order. */
  readonly spoken: Spoken[];
  readonly calls: ToolCallPart[];
}

/** A text, or the JSON text of a thinking block. */
type Spoken = (Cacheable & { readonly text: string }) | { readonly thinking: string };

/**
 * Writes `messages`. Instructions in the middle of the conversation become texts of the user, in the same place, or
 * messages of the system behind the user's, where targets that take these require them.
 * Reasoning is kept if an upstream of this protocol signed it. A message is written in the same way in every later
 * request of the conversation, but for the instruction to call a tool.
 * @param demand an instruction behind the last message of the user, where it changes nothing that is cached; null for none
 * @throws {GatewayError} of status 400, naming the client's field, for parts that the protocol cannot express, and for
 * a conversation without content
 */
function encodeMessages(
  request: ConversationRequest,
  target: TargetOptions,
  demand: string | null,
): EncodedMessages {
  const messages = collect(request, target);
  trimPrefill(messages);
  const last = messages.at(-1);
  if (last === undefined) throw nothingSaid(request.from);
  if (demand !== null && last.role === 'user') addInstruction(last, { kind: 'text', text: demand }, target);
  return {
    text: `[${messages.map(encodeMessage).join(',')}]`,
    isBegun: last.role !== 'user',
    mayThink: mayThink(messages),
  };
}

/** Returns the 400 for a conversation without anything but instructions. */
function nothingSaid(from: TextProtocolName): GatewayError {
  const param = settingName(from, 'prefill');
  return memberError(
    'invalid_value',
    param,
    `Invalid value for '${param}': this model needs at least one message of the user that is not empty. ` +
      'Send a message of the user for the model to answer.',
  );
}

function collect({ turns }: ConversationRequest, target: TargetOptions): Message[] {
  const messages: Message[] = [];
  for (const turn of turns) {
    if (turn.role === 'system') {
      if (isBlank(turn.text)) continue;
      addInstruction(userMessage(messages), { kind: 'text', text: turn.text, cache: turn.cache }, target);
    } else if (turn.role === 'user') {
      for (const part of turn.parts) {
        if (part.kind === 'toolResult') userMessage(messages).results.push(part);
        else if (part.kind !== 'text' || !isBlank(part.text)) userMessage(messages).rest.push(part);
      }
    } else {
      for (const part of turn.parts) addAssistantPart(messages, part, target.unsignedThinking);
    }
  }
  return messages;
}

function addInstruction(message: UserMessage, part: TextPart, { systemMessages }: TargetOptions): void {
  (systemMessages ? message.instructions : message.rest).push(part);
}

function userMessage(messages: Message[]): UserMessage {
  const last = messages.at(-1);
  if (last?.role === 'user') return last;
  const message: UserMessage = { role: 'user', results: [], rest: [], instructions: [] };
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

function addAssistantPart(messages: Message[], part: AssistantPart, takesUnsigned: boolean): void {
  if (part.kind === 'toolCall') {
    assistantMessage(messages).calls.push(part);
  } else if (part.kind === 'reasoning') {
    const signature = signatureFor('messages', part.signature);
    if (signature === null || (signature.value === '' && !takesUnsigned)) return;
    const value = JSON.stringify(signature.value);
    const words = signature.words ?? part.text;
    // The vendor refuses a signature beside words other than those that it signed, which includes no words at all.
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

/**
 * Trims a last message of the assistant, which the upstream continues: it may not end with white space, and may have no
 * thinking.
 */
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
  if (message.role === 'user') return encodeUserMessage(message);
  const blocks = [
    ...message.spoken.map((each) =>
      'text' in each ? withCacheControl(encodeText(each.text), each) : each.thinking,
    ),
    ...message.calls.map((part) => withCacheControl(encodeCall(part), part)),
  ];
  return `{"role":"assistant","content":[${blocks.join(',')}]}`;
}

/** Writes a message of the user, and that of the system behind it. Instructions without one are the user's texts. */
function encodeUserMessage({ results, rest, instructions }: UserMessage): string {
  const orders = instructions.map((part) => withCacheControl(encodeText(part.text), part));
  const blocks = [
    ...results.map((part) => withCacheControl(encodeResult(part), part)),
    ...rest.map((part) => withCacheControl(encodeBlock(part), part)),
  ];
  if (blocks.length === 0) return `{"role":"user","content":[${orders.join(',')}]}`;
  const system = orders.length === 0 ? '' : `,{"role":"system","content":[${orders.join(',')}]}`;
  return `{"role":"user","content":[${blocks.join(',')}]}${system}`;
}

/** Writes a call. Its arguments stay as they were written, so that large numbers keep all their digits. */
function encodeCall({ id, name, input }: ToolCallPart): string {
  return `{"type":"tool_use","id":${JSON.stringify(legalCallId(id))},"name":${JSON.stringify(name)},"input":${input}}`;
}

interface EncodedTools {
  /** Undefined if there are none. */
  readonly tools: readonly JsonObject[] | undefined;
  readonly toolChoice: JsonObject | undefined;
  /** The answer must be a call, which the upstream does not allow beside thinking. */
  readonly forced: boolean;
  /** What the model is told where it refuses a choice that forces a call; null for other choices and models. */
  readonly demand: string | null;
}

/** Writes `tools` and `tool_choice`. A choice among some of the tools leaves out all others. */
function encodeTools(
  request: ConversationRequest,
  { forcedCalls }: TargetOptions,
  leftOut: LeftOut,
): EncodedTools {
  // The upstream refuses a choice without tools.
  const { search } = request;
  if (request.tools.length === 0 && search === undefined)
    return { tools: undefined, toolChoice: undefined, forced: false, demand: null };
  const choice = presentChoice(request);
  const chosen = choice?.mode === 'allowed' ? new Set(choice.names) : null;
  const tools = chosen === null ? request.tools : request.tools.filter(({ name }) => chosen.has(name));
  // In the older form of calls, an answer has one.
  let toolChoice = encodeToolChoice(choice, request.functionForm === true ? false : request.parallelCalls);
  let forced = toolChoice?.type === 'any' || toolChoice?.type === 'tool';
  let demand: string | null = null;
  if (forced && !forcedCalls) {
    leaveOut(request, 'toolChoice', leftOut);
    // A search is the vendor's own call, and the model answers with a text behind it.
    if (tools.length > 0 && search?.forced !== true) demand = callDemand(toolChoice?.name);
    toolChoice = { ...toolChoice, type: 'auto', name: undefined };
    forced = false;
  }
  // The last tool may have the mark up to which the prompt is cached.
  const searches = search === undefined ? [] : [encodeSearch(search)];
  return { tools: [...searches, ...tools.map(encodeTool)], toolChoice, forced, demand };
}

/** Returns the instruction to call a tool, whose name may be open: clients read structured answers from such calls. */
function callDemand(name: unknown): string {
  const tool = typeof name === 'string' ? `the tool '${name}'` : 'one of the tools';
  return `Answer with a call of ${tool}, not with a text.`;
}

/** Removes names from a choice that no tool has: those tools may have been dropped. Returns null if no name remains. */
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

/** Returns the value of `cache_control`; undefined without a mark. */
function cacheControl(cache: CacheMark | null | undefined): JsonObject | undefined {
  if (!cache) return undefined;
  return cache.ttl === null ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: cache.ttl };
}

/**
 * Adds the mark of a part to its block.
 * @param block JSON text of an object
 */
function withCacheControl(block: string, { cache }: Cacheable): string {
  const control = cacheControl(cache);
  return control === undefined ? block : `${block.slice(0, -1)},"cache_control":${JSON.stringify(control)}}`;
}
