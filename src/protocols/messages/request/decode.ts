import { cacheMarkOf, lastMark, marked, markedAsWhole } from '../../../conversation/cache-marks.js';
import { cutId, hasLostTokens } from '../../../conversation/carrying-id.js';
import { compactionRequest } from '../../../conversation/compaction.js';
import { effortOfBudget, readEffort } from '../../../conversation/effort.js';
import { isHttpUrl, registeredType } from '../../../conversation/media-source.js';
import type {
  AssistantPart,
  Cacheable,
  ContentPart,
  ConversationRequest,
  HostedTool,
  MediaPart,
  MediaSource,
  OutputFormat,
  Reasoning,
  ReasoningPart,
  TextPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../../conversation/request.js';
import { carriedSignature } from '../../../conversation/signature.js';
import { objectArguments } from '../../../conversation/tool-calls.js';
import type { WebSearch } from '../../../conversation/web-search.js';
import { GatewayError } from '../../../errors.js';
import {
  countOf,
  decodeStop,
  flagOrNull,
  isObject,
  type JsonObject,
  listOf,
  nameOfType,
  numberOrNull,
  objectOf,
  objectsOf,
  requireName,
  textOf,
  textOrNull,
  wrongValue,
} from '../../../wire/json.js';
import { ofType, unreadMembers, untranslatable } from '../../unsupported.js';
import { withoutBillingLine } from '../billing-line.js';
import { originalCallId } from '../call-ids.js';
import { clientFunctionOf } from '../client-tools.js';
import { compactionIn } from '../compaction-block.js';
import { readMembers } from '../read-members.js';
import { decodeSearch, isSearchTool } from '../search-blocks.js';
import { isServerBlock, serverBlockText } from '../server-blocks.js';
import { effortOfMessages, isCleared } from '../system-messages.js';
import { changedTools, type GivenTool, noteToolChange, type ToolChange } from '../tool-changes.js';

/**
 * Reads the body of `POST /v1/messages` or of a request that counts its tokens; see `TextCodec.decodeRequest`. Drops
 * what no other protocol can express if the answer is the same without it.
 * @throws {GatewayError} of status 400, naming the field
 */
export function decodeRequest(body: JsonObject, stream: boolean): ConversationRequest {
  refuseServerState(body);
  const leftOut = new Set<string>();
  const changes: ToolChange[] = [];
  const instructions = decodeTexts(body.system, 'system', { leftOut, changes });
  const turns = decodeMessages(body.messages, instructions, { leftOut, changes });
  const system = withoutBillingLine(instructions.map(({ text }) => text));
  const declared = listOf(body.tools).map((tool, index) => ({ tool, at: `tools[${index}]` }));
  const given = changedTools(declared, changes, leftOut);
  const { tools, hostedTools, search } = decodeTools(given, body.tool_choice);
  const choice = search?.forced === true ? null : decodeToolChoice(body.tool_choice);
  const isOfHosted = choice?.mode === 'named' && isHosted(choice.name, given, tools);
  if (isOfHosted) leftOut.add('tool_choice');
  const compaction = compactionIn(body);
  if (compaction === null && isObject(body.compaction)) leftOut.add('compaction');
  const maxTokens = numberOrNull(body.max_tokens);
  const request: ConversationRequest = {
    from: 'messages',
    stream,
    leftOut: [...leftOut, ...unreadMembers(body, readMembers)],
    system,
    systemCache: marksOf(instructions.slice(instructions.length - system.length)),
    turns,
    tools,
    hostedTools,
    search,
    toolChoice: isOfHosted ? null : choice,
    parallelCalls: decodeParallelCalls(body.tool_choice),
    format: decodeFormat(body),
    reasoning: decodeReasoning(body),
    // Zero only warms a cache. Elsewhere the minimum is one.
    maxTokens: maxTokens === null ? null : Math.max(1, maxTokens),
    temperature: numberOrNull(body.temperature),
    topP: numberOrNull(body.top_p),
    topK: numberOrNull(body.top_k),
    stop: decodeStop(body.stop_sequences),
    candidates: 1,
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
    logitBias: null,
    logprobs: null,
    verbosity: null,
    user: (isObject(body.metadata) && textOrNull(body.metadata.user_id)) || null,
    includeUsage: true,
    echo: null,
    compaction: null,
  };
  if (compaction === null) return request;
  const echo = { tool_changes: changes.map(({ block }) => block) };
  return { ...compactionRequest(request, 'block', textOf(compaction.instructions)), echo };
}

/** @returns undefined without a mark */
function marksOf(parts: readonly TextPart[]): ConversationRequest['systemCache'] {
  return lastMark(parts) === null ? undefined : parts.map(({ cache }) => cache ?? null);
}

/** Refuses what is stored at the vendor or reached from there: the conversation does not contain it. */
function refuseServerState(body: JsonObject): void {
  if ((body.container ?? null) !== null) throw untranslatable('container');
  if (Array.isArray(body.mcp_servers) && body.mcp_servers.length > 0) throw untranslatable('mcp_servers');
  // A request that begins a thread is complete. The messages of a thread that is continued have already been added from
  // where they are kept.
  const thread = body.thread ?? null;
  if (thread !== null && !(isObject(thread) && thread.type === 'create'))
    throw new GatewayError('thread_unsupported_request', undefined, { param: 'thread' });
}

/**
 * Reads the format. In the beta of structured outputs it was a member of the body, and the vendor still accepts it
 * there.
 */
function decodeFormat({ output_config: config, output_format: older }: JsonObject): OutputFormat | null {
  const newer = isObject(config) ? config.format : null;
  const format = isObject(newer) ? newer : older;
  if (!isObject(format)) return null;
  if (format.type !== 'json_schema')
    throw untranslatable(format === newer ? 'output_config.format' : 'output_format', ofType(format.type));
  return { kind: 'schema', name: null, description: null, schema: objectOf(format.schema), strict: null };
}

/**
 * Reads `thinking` and `output_config.effort`, which system messages may change. Without `thinking` the effort applies,
 * but no reasoning is shown: the client did not request it.
 * @throws {GatewayError} of status 400 for an effort or a type of thinking that is not documented
 */
function decodeReasoning(body: JsonObject): Reasoning | null {
  const top = readEffort(objectOf(body.output_config).effort, 'output_config.effort');
  const effort = effortOfMessages(objectsOf(body.messages)) ?? top;
  const { thinking } = body;
  if (!isObject(thinking))
    return effort === null ? null : { effort, budget: null, show: false, summary: null };
  const show = thinking.display !== 'omitted';
  switch (thinking.type) {
    case 'enabled': {
      const budget = countOf(thinking.budget_tokens);
      return { effort: effortOfBudget(budget), budget, show, summary: null };
    }
    case 'adaptive':
    case 'between_tools':
      return { effort, budget: null, show, summary: null };
    case 'disabled':
      return { effort: 'none', budget: null, show: false, summary: null };
    default:
      throw untranslatable('thinking', ofType(thinking.type));
  }
}

/** Returns content as blocks: a string is one text, and absent content has no blocks. */
function blocksOf(content: unknown): readonly JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
}

/** What the contents of messages say besides their texts. */
interface Aside {
  /** See `serverBlockText`. */
  readonly leftOut: Set<string>;
  /** See `noteToolChange`. */
  readonly changes: ToolChange[];
}

/**
 * Reads the texts of a system prompt, a system message or a search result, without empty ones.
 * @throws {GatewayError} of status 400 for a block of a known type that is not a text
 */
function decodeTexts(content: unknown, at: string, aside: Aside): TextPart[] {
  return blocksOf(content)
    .map((block, index) => {
      const part: TextPart = { kind: 'text', text: decodeText(block, `${at}[${index}]`, aside) };
      return marked(part, cacheMarkOf(block));
    })
    .filter(({ text }) => text !== '');
}

function decodeText(block: JsonObject, at: string, { leftOut, changes }: Aside): string {
  if (block.type === 'text') return textOf(block.text);
  if (noteToolChange(block, at, changes)) return '';
  if (isServerBlock(block)) return serverBlockText(block, leftOut) ?? '';
  throw untranslatable(at, ofType(block.type));
}

function joinedTexts(parts: readonly TextPart[]): string {
  return parts.map(({ text }) => text).join('\n\n');
}

/**
 * Reads a block of a user's message or of a tool's result. Documents of text become texts, and the descriptions of
 * other documents stand before them. `citations` are dropped. A block's cache mark is that of its last part.
 * @param at path of the block in the client's body
 * @param parts receives the content: a document of blocks has several parts
 * @throws {GatewayError} of status 400 for blocks that are malformed or in the wrong place
 */
function decodeBlock(block: JsonObject, at: string, parts: ContentPart[], aside: Aside): void {
  const { length } = parts;
  decodeUnmarked(block, at, parts, aside);
  const mark = cacheMarkOf(block);
  const last = mark === null || parts.length === length ? undefined : parts.pop();
  if (last !== undefined) parts.push(marked(last, mark));
}

function decodeUnmarked(block: JsonObject, at: string, parts: ContentPart[], aside: Aside): void {
  switch (block.type) {
    case 'text':
      parts.push({ kind: 'text', text: textOf(block.text) });
      return;
    case 'image':
      parts.push(decodeImage(block, at));
      return;
    case 'document':
      decodeDocument(block, at, parts, aside);
      return;
    case 'search_result':
      parts.push(decodeSearchResult(block, at, aside));
      return;
    default: {
      if (!isServerBlock(block)) throw untranslatable(at, ofType(block.type));
      if (noteToolChange(block, at, aside.changes)) return;
      const text = serverBlockText(block, aside.leftOut);
      if (text !== null) parts.push({ kind: 'text', text });
    }
  }
}

function decodeImage(block: JsonObject, at: string): MediaPart {
  const source = decodeSource(objectOf(block.source), at, null);
  return { kind: 'image', source, detail: null, name: null, at };
}

function decodeDocument(block: JsonObject, at: string, parts: ContentPart[], aside: Aside): void {
  const source = objectOf(block.source);
  const title = textOf(block.title);
  const context = textOf(block.context);
  if (source.type === 'text') {
    const text = textOf(source.data);
    parts.push({ kind: 'text', text: titled([title, context], text) });
  } else if (source.type === 'content') {
    const head = titled([title, context], '');
    if (head !== '') parts.push({ kind: 'text', text: head });
    const contentAt = `${at}.source.content`;
    blocksOf(source.content).forEach((inner, index) => {
      decodeBlock(inner, `${contentAt}[${index}]`, parts, aside);
    });
  } else {
    const media = decodeSource(source, at, 'application/pdf');
    if (context !== '') parts.push({ kind: 'text', text: context });
    parts.push({ kind: 'document', source: media, detail: null, name: fileName(title, media), at });
  }
}

/** Returns the name of a file for a title, as other protocols need it. Its extension indicates the type. */
function fileName(title: string, { mediaType }: MediaSource): string | null {
  if (title === '') return null;
  const isNamed = mediaType !== 'application/pdf' || title.toLowerCase().endsWith('.pdf');
  return isNamed ? title : `${title}.pdf`;
}

/** Converts a search result to its text, after a heading with its source: the model should name its sources. */
function decodeSearchResult(block: JsonObject, at: string, aside: Aside): TextPart {
  const text = joinedTexts(decodeTexts(block.content, `${at}.content`, aside));
  return {
    kind: 'text',
    text: titled([textOf(block.title), textOf(block.source)], text),
  };
}

function titled(head: readonly string[], text: string): string {
  const lines = head.filter((line) => line !== '').join('\n');
  return lines === '' || text === '' ? lines + text : `${lines}\n\n${text}`;
}

/** @param spareType media type if the source names none: a document by URL is always a PDF here */
function decodeSource(source: JsonObject, at: string, spareType: string | null): MediaSource {
  if (source.type === 'url') {
    const url = textOf(source.url);
    if (!isHttpUrl(url)) throw wrongValue(`${at}.source.url`, 'an http(s) URL');
    return { kind: 'url', url, mediaType: spareType };
  }
  if (source.type !== 'base64') throw untranslatable(`${at}.source`, ofType(source.type));
  const mediaType = registeredType(textOrNull(source.media_type) ?? spareType ?? '');
  return { kind: 'data', mediaType, data: textOf(source.data) };
}

/** State while messages are read. */
interface History extends Aside {
  /** Names of the tools by the ids of their calls: results contain only the id. */
  readonly toolNames: Map<string, string>;
}

/** Replaces a user's message of which no content remains. Without it the model would continue its own last turn. */
const nothingLeft: TextPart = { kind: 'text', text: '(The content of this message was left out.)' };

/**
 * Reads `messages`, each as a separate turn. Messages without content are left out.
 * @param instructions receives the texts of system messages that stand before all others
 * @throws {GatewayError} of status 400 for roles and blocks that cannot be translated
 */
function decodeMessages(messages: unknown, instructions: TextPart[], aside: Aside): Turn[] {
  const turns: Turn[] = [];
  const history: History = { leftOut: aside.leftOut, changes: aside.changes, toolNames: new Map() };
  const list = objectsOf(messages);
  const lastUser = list.findLastIndex(({ role }) => role === 'user');
  list.forEach((message, index) => {
    const { role, content } = message;
    const at = `messages[${index}]`;
    const contentAt = `${at}.content`;
    if (role === 'user') {
      const parts = decodeUser(blocksOf(content), contentAt, history);
      if (parts.length > 0) turns.push({ role, parts });
    } else if (role === 'assistant') {
      const parts = decodeAssistant(blocksOf(content), contentAt, history);
      if (parts.length > 0) turns.push({ role, parts });
    } else if (role === 'system') {
      const texts = decodeTexts(content, contentAt, aside);
      // The changes of tools that it contains stay.
      if (isCleared(message, index, lastUser)) return;
      if (turns.length === 0) instructions.push(...texts);
      else if (texts.length > 0)
        turns.push(marked<Turn & Cacheable>({ role, text: joinedTexts(texts) }, lastMark(texts)));
    } else {
      throw untranslatable(at, `with the role '${nameOfType(role)}'`);
    }
  });
  return turns;
}

function decodeUser(blocks: readonly JsonObject[], at: string, history: History): UserPart[] {
  const results: ToolResultPart[] = [];
  const rest: ContentPart[] = [];
  const changesBefore = history.changes.length;
  blocks.forEach((block, index) => {
    const blockAt = `${at}[${index}]`;
    if (block.type === 'tool_result') results.push(decodeResult(block, blockAt, history));
    else decodeBlock(block, blockAt, rest, history);
  });
  if (results.length > 0) return [...results, ...rest];
  const isSilent = blocks.length === 0 || history.changes.length - changesBefore === blocks.length;
  return rest.length === 0 && !isSilent ? [nothingLeft] : rest;
}

function decodeResult(block: JsonObject, at: string, history: History): ToolResultPart {
  const callId = originalCallId(cutId(textOf(block.tool_use_id)).id);
  const content: ContentPart[] = [];
  blocksOf(block.content).forEach((inner, index) => {
    decodeBlock(inner, `${at}.content[${index}]`, content, history);
  });
  const name = history.toolNames.get(callId) ?? '';
  const isError = block.is_error === true;
  return markedAsWhole({ kind: 'toolResult', callId, name, content, isError, at }, cacheMarkOf(block));
}

function decodeAssistant(blocks: readonly JsonObject[], at: string, history: History): AssistantPart[] {
  const parts: AssistantPart[] = [];
  let isApart = false;
  blocks.forEach((block, index) => {
    const blockAt = `${at}[${index}]`;
    switch (block.type) {
      case 'text':
        // Some clients put an empty text beside their calls.
        if (block.text === '') return;
        parts.push(textBehind(parts, textOf(block.text), isApart));
        isApart = false;
        return;
      case 'tool_use': {
        const cut = cutId(textOf(block.id));
        const { id, tokens } = cut;
        if (hasLostTokens(textOf(block.id), cut)) history.leftOut.add('tool_use.id');
        for (const signature of tokens) parts.push({ kind: 'reasoning', text: '', signature });
        const call = decodeCall(block, originalCallId(id), blockAt);
        history.toolNames.set(call.id, call.name);
        parts.push(call);
        return;
      }
      case 'thinking':
      case 'redacted_thinking':
        parts.push(decodeReasoningPart(block));
        return;
      default: {
        if (!isServerBlock(block))
          throw untranslatable(blockAt, `${ofType(block.type)} in a turn of the assistant`);
        if (noteToolChange(block, blockAt, history.changes)) return;
        const text = serverBlockText(block, history.leftOut);
        if (text !== null) parts.push(textBehind(parts, text, true));
        isApart = true;
      }
    }
  });
  return parts;
}

/**
 * @param isApart a block of another type stood between the texts. Some protocols join the texts of a turn without a
 * separator
 */
function textBehind(parts: readonly AssistantPart[], text: string, isApart: boolean): TextPart {
  return { kind: 'text', text: isApart && parts.at(-1)?.kind === 'text' ? `\n\n${text}` : text };
}

function decodeCall(block: JsonObject, id: string, at: string): ToolCallPart {
  const input = block.input ?? {};
  return {
    kind: 'toolCall',
    id,
    name: requireName(block, at),
    input: objectArguments(typeof input === 'string' ? input : JSON.stringify(input)),
    custom: false,
    at,
  };
}

/** Reads reasoning. A missing or empty signature is that of reasoning from a protocol without signatures. */
function decodeReasoningPart(block: JsonObject): ReasoningPart {
  if (block.type === 'redacted_thinking')
    return {
      kind: 'reasoning',
      text: '',
      signature: carriedSignature('messages', textOf(block.data), true),
    };
  return {
    kind: 'reasoning',
    text: textOf(block.thinking),
    signature: carriedSignature('messages', textOf(block.signature), false),
  };
}

/**
 * Reads `tools`. Those with a type of their own, such as `code_execution_20250825`, run only at their vendor.
 * Exceptions are web search, which other vendors run, too, and tools that the client runs itself.
 * @throws {GatewayError} of status 400 for a tool without a name
 */
function decodeTools(
  given: readonly GivenTool[],
  choice: unknown,
): Pick<ConversationRequest, 'tools' | 'hostedTools' | 'search'> {
  const tools: Tool[] = [];
  const hostedTools: HostedTool[] = [];
  let search: WebSearch | undefined;
  for (const { tool, at } of given) {
    // The schema does not check a tool that a block of a message adds.
    if (!isObject(tool)) throw wrongValue(at, 'an object');
    const type = tool.type ?? 'custom';
    if (search === undefined && isSearchTool(type)) {
      search = decodeSearch(tool, at, choice);
      continue;
    }
    if (type !== 'custom') {
      const own = clientFunctionOf(tool);
      if (own === null) hostedTools.push({ type: nameOfType(type), at });
      else tools.push(own);
      continue;
    }
    tools.push({
      name: requireName(tool, at),
      description: textOrNull(tool.description),
      parameters: isObject(tool.input_schema) ? tool.input_schema : null,
      strict: flagOrNull(tool.strict),
    });
  }
  return { tools, hostedTools, search };
}

/** Tells whether a name belongs to a tool that only the vendor runs. A choice of that tool is left out with it. */
function isHosted(name: string, given: readonly GivenTool[], tools: readonly Tool[]): boolean {
  if (tools.some((tool) => tool.name === name)) return false;
  return given.some(({ tool }) => isObject(tool) && tool.name === name);
}

/**
 * Reads `tool_choice`, except its setting of parallel calls.
 * @throws {GatewayError} of status 400 for a choice in none of the documented forms
 */
function decodeToolChoice(choice: unknown): ToolChoice | null {
  if (!isObject(choice)) return null;
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { mode: choice.type };
    case 'any':
      return { mode: 'required' };
    case 'tool':
      return { mode: 'named', name: textOf(choice.name) };
    default:
      throw untranslatable('tool_choice', ofType(choice.type));
  }
}

/**
 * Returns whether a model may make several calls in one turn. `tool_choice` has the negated setting. Null if it has
 * none.
 */
function decodeParallelCalls(choice: unknown): boolean | null {
  const disabled = isObject(choice) ? choice.disable_parallel_tool_use : null;
  return typeof disabled === 'boolean' ? !disabled : null;
}
