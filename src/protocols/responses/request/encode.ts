import type { TargetOptions } from '../../../conversation/codec.js';
import { urlOfMedia } from '../../../conversation/media-source.js';
import type {
  AssistantPart,
  CacheMark,
  ContentPart,
  ConversationRequest,
  MediaPart,
  OutputFormat,
  ReasoningPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../../conversation/request.js';
import { toolParameters } from '../../../conversation/tool-calls.js';
import type { JsonObject } from '../../../wire/json.js';
import { quoted } from '../../../wire/quoted.js';
import { systemParts, withBreakpoint } from '../../openai-shared/cache-breakpoint.js';
import { fileNameOf } from '../../openai-shared/file-part.js';
import { responsesCallId, userId } from '../../openai-shared/hashed-id.js';
import { encodeSchema, encodeServing, member } from '../../openai-shared/settings.js';
import { refuseUnsupported, unsupportedAt } from '../../unsupported.js';
import { openReasoning } from '../reasoning.js';
import { encodeSearch, includedSources } from '../search-item.js';

/** The protocol refuses a lower limit of output tokens. */
const leastOutputTokens = 16;

/**
 * Encodes a request for an upstream of this protocol; see `TextCodec.encodeRequest`. The upstream stores nothing, so
 * reasoning is requested in its encrypted form, which the client carries.
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions): string {
  refuseUnsupported(request, target, 'responses', ['candidates', 'logitBias']);
  const { tools, toolChoice, search, system, systemCache } = request;
  // `instructions` cannot have marks.
  const isMarked = target.cacheBreakpoints && systemCache?.some((mark) => mark !== null) === true;
  const instructions = isMarked ? [markedInstructions(system, systemCache)] : [];
  const { maxTokens } = request;
  let body =
    `{"model":${JSON.stringify(target.model)}` +
    member('stream', request.stream || null) +
    ',"store":false' +
    member('max_output_tokens', maxTokens === null ? null : Math.max(leastOutputTokens, maxTokens)) +
    member('temperature', request.temperature) +
    member('top_p', request.topP) +
    member('safety_identifier', request.user === null ? null : userId(request.user)) +
    encodeServing(request.serving) +
    textSettings(request) +
    reasoningSettings(request) +
    included(request, target) +
    member('instructions', request.system.length === 0 || isMarked ? null : request.system.join('\n\n')) +
    member('max_tool_calls', search?.maxUses ?? null);
  if (tools.length > 0 || search !== undefined) {
    const searches = search === undefined ? [] : [encodeSearch(search)];
    body += `,"tools":[${[...searches, ...tools.map(encodeTool)].join(',')}]`;
    if (search?.forced === true) body += ',"tool_choice":{"type":"web_search"}';
    else if (toolChoice !== null) body += `,"tool_choice":${encodeToolChoice(toolChoice, tools)}`;
    body += member('parallel_tool_calls', request.parallelCalls);
  }
  const items = encodeInput(request.turns, target);
  return `${body},"input":[${[...instructions, ...items].join(',')}]}`;
}

function markedInstructions(system: readonly string[], marks: readonly (CacheMark | null)[]): string {
  const parts = systemParts(system, marks).map(({ text, cache }) =>
    withBreakpoint(textPart('input_text', text), cache),
  );
  return messageItem('developer', parts.join(','));
}

function textSettings({ format, verbosity }: ConversationRequest): string {
  if (format === null && verbosity === null) return '';
  return member('text', { format: encodeFormat(format), verbosity: verbosity ?? undefined });
}

function encodeFormat(format: OutputFormat | null): JsonObject | undefined {
  if (format?.kind !== 'schema') return format === null ? undefined : { type: 'json_object' };
  return { type: 'json_schema', ...encodeSchema(format) };
}

function reasoningSettings({ reasoning }: ConversationRequest): string {
  if (reasoning === null) return '';
  const { effort, show } = reasoning;
  const summary = reasoning.summary ?? (show ? 'auto' : null);
  if (effort === null && summary === null) return '';
  return member('reasoning', { effort: effort ?? undefined, summary: summary ?? undefined });
}

function included(
  { reasoning, logprobs, search, tools }: ConversationRequest,
  { encryptedReasoning }: TargetOptions,
): string {
  const include: string[] = [];
  // Models that do not reason refuse it. Unasked, it is of use between the calls of tools alone.
  const reasons = reasoning === null ? encryptedReasoning && tools.length > 0 : reasoning.effort !== 'none';
  if (reasons) include.push('"reasoning.encrypted_content"');
  if (logprobs !== null) include.push('"message.output_text.logprobs"');
  if (search !== undefined) include.push(`"${includedSources}"`);
  if (include.length === 0) return '';
  return `,"include":[${include.join(',')}]${logprobs === null ? '' : `,"top_logprobs":${logprobs}`}`;
}

/**
 * Writes the output of a tool as parts, of which the last one may have the output's mark. Marks move on with a
 * conversation, and what they leave must keep its bytes.
 */
function encodeMarkedOutput(content: readonly ContentPart[], mark: CacheMark | null | undefined): string {
  const parts = content.map(contentPart);
  const last = parts.pop();
  return last === undefined ? '""' : `[${[...parts, withBreakpoint(last, mark)].join(',')}]`;
}

/** Writes the output of a tool: a single text as a string, other content as parts. */
function encodeOutput(content: readonly ContentPart[], isError: boolean): string {
  const [first, second] = content;
  if (content.length === 0) return '""';
  if (content.length === 1 && first?.kind === 'text') return quoted(first.text);
  if (isError && content.length === 2 && first?.kind === 'text' && second?.kind === 'text')
    return JSON.stringify(`${first.text} ${second.text}`);
  return `[${content.map(contentPart).join(',')}]`;
}

/**
 * Writes a part of a user's message or of an output.
 * @throws {GatewayError} of status 400 for media without a part in the protocol
 */
function contentPart(part: ContentPart): string {
  switch (part.kind) {
    case 'text':
      return textPart('input_text', part.text);
    case 'image':
      return `{"type":"input_image","image_url":${urlOf(part)},"detail":${JSON.stringify(part.detail ?? 'auto')}}`;
    case 'document':
      return filePart(part);
    default:
      throw unsupportedAt(part.at, 'responses', `(${part.kind})`);
  }
}

function filePart(part: MediaPart): string {
  const { source, name } = part;
  if (source.kind === 'url') {
    const filename = name === null ? '' : `,"filename":${JSON.stringify(name)}`;
    return `{"type":"input_file","file_url":${urlOf(part)}${filename}}`;
  }
  return `{"type":"input_file","filename":${JSON.stringify(fileNameOf(part))},"file_data":${urlOf(part)}}`;
}

/** Returns the JSON text of the URL, or of a data URL with the bytes. */
function urlOf({ source }: MediaPart): string {
  return quoted(urlOfMedia(source));
}

/** Writes a text. */
function textPart(type: string, text: string): string {
  return `{"type":"${type}","text":${quoted(text)}}`;
}

/**
 * Encodes turns as items: each message, call, output and reasoning is a separate one.
 * @returns the JSON text of each. The items of a turn depend only on the turns before it
 * @throws {GatewayError} naming the part that the protocol cannot express
 */
function encodeInput(turns: readonly Turn[], target: TargetOptions): string[] {
  const isMarked = target.cacheBreakpoints;
  const items: string[] = [];
  /** Calls whose outputs have a type of their own. */
  const customCalls = new Set<string>();
  const sent = new Set<string>();
  for (const turn of turns) {
    if (turn.role === 'system') {
      const text = textPart('input_text', turn.text);
      items.push(messageItem('developer', isMarked ? withBreakpoint(text, turn.cache) : text));
    } else if (turn.role === 'user') encodeUser(turn.parts, items, { customCalls, isMarked });
    else encodeAssistant(turn.parts, items, { customCalls, sent, target });
  }
  return items;
}

function messageItem(role: string, parts: string): string {
  return `{"type":"message","role":"${role}","content":[${parts}]}`;
}

interface UserContext {
  readonly customCalls: ReadonlySet<string>;
  /** Whether marks for the model's prompt cache are written. */
  readonly isMarked: boolean;
}

function encodeUser(parts: readonly UserPart[], items: string[], context: UserContext): void {
  let content = '';
  for (const part of parts) {
    if (part.kind === 'toolResult') items.push(outputItem(part, context));
    else {
      const text = contentPart(part);
      content += (content === '' ? '' : ',') + (context.isMarked ? withBreakpoint(text, part.cache) : text);
    }
  }
  if (content !== '') items.push(messageItem('user', content));
}

interface AssistantContext {
  readonly customCalls: Set<string>;
  /** Ids of the reasoning items so far. */
  readonly sent: Set<string>;
  readonly target: TargetOptions;
}

function encodeAssistant(
  parts: readonly AssistantPart[],
  items: string[],
  { customCalls, sent, target }: AssistantContext,
): void {
  let content = '';
  const close = (): void => {
    if (content !== '') items.push(messageItem('assistant', content));
    content = '';
  };
  for (const part of parts) {
    switch (part.kind) {
      case 'text':
        content += (content === '' ? '' : ',') + textPart('output_text', part.text);
        break;
      case 'refusal':
        content += `${content === '' ? '' : ','}{"type":"refusal","refusal":${JSON.stringify(part.text)}}`;
        break;
      case 'toolCall':
        close();
        if (part.custom) customCalls.add(part.id);
        items.push(callItem(part));
        break;
      case 'reasoning': {
        const item = reasoningItem(part, sent, target);
        if (item === null) break;
        close();
        items.push(item);
        break;
      }
      default:
        throw unsupportedAt(part.at, 'responses', `of the assistant (${part.kind})`);
    }
  }
  close();
}

function callItem({ id, name, input, custom }: ToolCallPart): string {
  const call = `"call_id":${JSON.stringify(responsesCallId(id))},"name":${JSON.stringify(name)}`;
  return custom
    ? `{"type":"custom_tool_call",${call},"input":${JSON.stringify(input)}}`
    : `{"type":"function_call",${call},"arguments":${JSON.stringify(input)}}`;
}

/**
 * Returns null for reasoning of another model or upstream: one takes only what it encrypted itself. It also refuses an
 * item that it gets twice, but some clients copy a signature to every call that follows it and put results between them.
 */
function reasoningItem(
  { text, signature }: ReasoningPart,
  sent: Set<string>,
  target: TargetOptions,
): string | null {
  const encrypted = openReasoning(signature, target);
  if (encrypted === null) return null;
  const { id, content } = encrypted;
  if (id !== '' && sent.size === sent.add(id).size) return null;
  const own = id === '' ? '' : `"id":${JSON.stringify(id)},`;
  const summary = text === '' ? '' : textPart('summary_text', text);
  return `{"type":"reasoning",${own}"summary":[${summary}],"encrypted_content":${JSON.stringify(content)}}`;
}

function outputItem(part: ToolResultPart, { customCalls, isMarked }: UserContext): string {
  const { callId, isError } = part;
  // The protocol has no member for a failure, so the text states it.
  const content: readonly ContentPart[] = isError
    ? [{ kind: 'text', text: 'Error:' }, ...part.content]
    : part.content;
  const output = isMarked ? encodeMarkedOutput(content, part.cache) : encodeOutput(content, isError);
  const type = customCalls.has(callId) ? 'custom_tool_call_output' : 'function_call_output';
  return `{"type":"${type}","call_id":${JSON.stringify(responsesCallId(callId))},"output":${output}}`;
}

const plainText = { type: 'text' };
/** Writes a tool. */
function encodeTool({ name, description, parameters, strict, custom }: Tool): string {
  let tool = `{"type":"${custom === undefined ? 'function' : 'custom'}","name":${JSON.stringify(name)}`;
  if (description !== null) tool += `,"description":${JSON.stringify(description)}`;
  if (custom !== undefined) return `${tool},"format":${JSON.stringify(custom.format ?? plainText)}}`;
  // The protocol's default of `strict` is true. In every other protocol it is false.
  return `${tool},"parameters":${JSON.stringify(toolParameters(parameters))},"strict":${strict ?? false}}`;
}

/** Writes `tool_choice`. */
function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): string {
  switch (choice.mode) {
    case 'named':
      return namedTool(choice.name, customNames(tools));
    case 'allowed': {
      const custom = customNames(tools);
      const named = choice.names.map((name) => namedTool(name, custom)).join(',');
      return `{"type":"allowed_tools","mode":"${choice.required ? 'required' : 'auto'}","tools":[${named}]}`;
    }
    default:
      return `"${choice.mode}"`;
  }
}

function customNames(tools: readonly Tool[]): ReadonlySet<string> {
  return new Set(tools.filter(({ custom }) => custom !== undefined).map(({ name }) => name));
}

function namedTool(name: string, custom: ReadonlySet<string>): string {
  return `{"type":"${custom.has(name) ? 'custom' : 'function'}","name":${JSON.stringify(name)}}`;
}
