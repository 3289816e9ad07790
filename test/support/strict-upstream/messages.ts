import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { named } from '../events.js';
import { at } from '../json.js';
import {
  type Asked,
  type AskedTurn,
  checkAnthropicAnswer,
  checkAnthropicStrict,
  checkNames,
  checkSchema,
  newTurn,
  objectOf,
  objectsOf,
  oneOf,
  onlyMembers,
  rule,
  textOf,
} from './asked.js';
import { type Memory, sign } from './memory.js';
import { pieces, type Reply, type Written } from './reply.js';

const members =
  'model messages max_tokens system stop_sequences stream temperature top_p top_k tools tool_choice thinking ' +
  'output_config metadata service_tier cache_control container inference_geo';
/** Each needs a beta header, which only clients of this vendor send. */
const betaMembers = 'context_management mcp_servers output_format speed thread diagnostics fallbacks';
/**
 * Models that always think, call no tool by force, and read thinking only behind the prompt that led to it
 * (https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5).
 */
const preserves = /^claude-(?:opus-5-5|sonnet-5-5|fable-5-1|mythos-5-1)/;
const blocks: Readonly<Record<string, string>> = {
  text: 'type text citations cache_control',
  image: 'type source cache_control',
  document: 'type source title context citations cache_control',
  tool_use: 'type id name input caller cache_control',
  tool_result: 'type tool_use_id content is_error cache_control',
  search_result: 'type source title content citations cache_control',
  container_upload: 'type file_id cache_control',
  thinking: 'type thinking signature',
  redacted_thinking: 'type data',
};
const roles: Readonly<Record<string, string>> = {
  user: 'text image document tool_result search_result container_upload',
  assistant: 'text tool_use thinking redacted_thinking',
  system: 'text',
};

/**
 * Reads a messages request by the rules of https://platform.claude.com/docs/en/api/messages and its pages on tools,
 * extended thinking and prompt caching.
 * @throws BrokenRule
 */
export function readMessages(body: JsonObject, memory: Memory, betas: string): Asked {
  onlyMembers(body, betas === '' ? members : `${members} ${betaMembers}`, '');
  const thinking = checkSettings(body, betas);
  const system = typeof body.system === 'string' ? [] : objectsOf(body.system ?? [], 'system');
  for (const [index, block] of system.entries()) {
    rule(block.type === 'text', `system.${index}: not a text`);
    onlyMembers(block, blocks.text ?? '', `system.${index}.`);
    textOf(block.text, `system.${index}.text`);
  }
  const tools = readTools(body, betas);
  const marks = countMarks(body);
  rule(marks <= 4, `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`);
  const choice = objectOf(body.tool_choice ?? {}, 'tool_choice');
  const turns = readTurns(objectsOf(body.messages, 'messages'), memory, thinking === 'enabled', betas);
  if (preserves.test(String(body.model))) checkPrefixes(body, memory);
  return {
    wire: 'messages',
    model: textOf(body.model, 'model'),
    stream: body.stream === true,
    tools,
    forced: choice.type === 'tool' ? String(choice.name) : choice.type === 'any',
    turns,
    thinks: thinking === 'enabled' || thinking === 'adaptive',
    shows: objectOf(body.thinking ?? {}, 'thinking').display !== 'omitted',
    schema: at(body, 'output_config', 'format', 'schema'),
    includes: true,
  };
}

/** @returns the type of the requested thinking */
function checkSettings(body: JsonObject, betas: string): unknown {
  const most = body.max_tokens;
  rule(typeof most === 'number' && Number.isInteger(most) && most >= 1, 'max_tokens: none');
  const thinking = objectOf(body.thinking ?? { type: 'disabled' }, 'thinking');
  oneOf(thinking.type, 'enabled adaptive disabled between_tools', 'thinking.type');
  const binding = betas.includes('thinking-binding-controls') ? ' block_binding' : '';
  onlyMembers(
    thinking,
    { enabled: `type budget_tokens display${binding}`, adaptive: `type display${binding}` }[
      String(thinking.type)
    ] ?? 'type',
    'thinking.',
  );
  if (preserves.test(String(body.model))) {
    rule(
      thinking.type !== 'enabled' && at(body, 'thinking', 'type') !== 'disabled',
      'thinking.type: not supported',
    );
    const choice = at(body, 'tool_choice', 'type');
    rule(choice !== 'any' && choice !== 'tool', 'tool_choice: type "tool" and "any" are not supported');
  }
  if (thinking.type === 'enabled') {
    const budget = thinking.budget_tokens;
    // With interleaved thinking it may exceed the limit of one answer
    // (https://platform.claude.com/docs/en/build-with-claude/extended-thinking).
    const isInterleaved = betas.includes('interleaved-thinking');
    const isBelow = typeof budget === 'number' && (isInterleaved || budget < most);
    rule(isBelow && budget >= 1024, 'thinking.budget_tokens');
  }
  const isThinking = thinking.type === 'enabled' || thinking.type === 'adaptive';
  if (isThinking) {
    rule(body.temperature === undefined || body.temperature === 1, 'temperature: with thinking');
    rule(body.top_k === undefined, 'top_k: with thinking');
    const choice = objectOf(body.tool_choice ?? { type: 'auto' }, 'tool_choice');
    rule(choice.type === 'auto' || choice.type === 'none', 'tool_choice: forced, with thinking');
  }
  if (typeof body.temperature === 'number') rule(body.temperature <= 1, 'temperature: above 1');
  if (body.metadata !== undefined) {
    const metadata = objectOf(body.metadata, 'metadata');
    onlyMembers(metadata, 'user_id', 'metadata.');
    if (metadata.user_id !== undefined) textOf(metadata.user_id, 'metadata.user_id', 512);
  }
  const output = objectOf(body.output_config ?? {}, 'output_config');
  onlyMembers(output, 'effort format task_budget', 'output_config.');
  oneOf(output.effort, 'low medium high xhigh max', 'output_config.effort');
  if (output.format !== undefined) {
    const format = objectOf(output.format, 'output_config.format');
    onlyMembers(format, 'type schema', 'output_config.format.');
    checkAnthropicAnswer(format.schema, 'output_config.format.schema');
  }
  return thinking.type;
}

function readTools(body: JsonObject, betas: string): Asked['tools'] {
  if (body.tools === undefined) {
    rule(body.tool_choice === undefined, 'tool_choice: without tools');
    return [];
  }
  const tools = objectsOf(body.tools, 'tools');
  const own = tools.filter(({ type }) => type === undefined || type === 'custom');
  const strict: JsonObject[] = [];
  for (const tool of own) {
    const name = textOf(tool.name, 'tools.name');
    const known =
      'type name description input_schema cache_control strict input_examples eager_input_streaming';
    onlyMembers(tool, betas === '' ? known : `${known} defer_loading allowed_callers`, `tools.${name}.`);
    const schema = checkSchema(tool.input_schema, 'anthropic', `tools.${name}.input_schema`);
    if (tool.strict === true) strict.push(schema);
  }
  checkAnthropicStrict(strict, 'tools');
  checkNames(
    tools.map(({ name }) => String(name)),
    /^[a-zA-Z0-9_-]{1,128}$/,
    'tools',
  );
  return own.map(({ name, input_schema: schema }) => ({
    name: String(name),
    custom: false,
    namespace: undefined,
    schema,
  }));
}

function countMarks(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + countMarks(each), 0);
  if (!isObject(value)) return 0;
  return Object.entries(value).reduce(
    (sum, [name, each]) =>
      sum +
      (name === 'cache_control' ? 1 : name === 'input' || name === 'input_schema' ? 0 : countMarks(each)),
    0,
  );
}

function readTurns(
  messages: readonly JsonObject[],
  memory: Memory,
  mustThink: boolean,
  betas: string,
): AskedTurn[] {
  rule(messages.length > 0, 'messages: none');
  rule(messages[0]?.role === 'user', 'messages: the first is not the user’s');
  const turns: AskedTurn[] = [];
  const used = new Set<string>();
  let open: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    const path = `messages.${index}.`;
    const role = String(message.role);
    rule(role in roles, `${path}role: '${role}' is none`);
    rule(role !== 'system' || betas !== '', `${path}role: 'system' without its beta`);
    onlyMembers(message, betas === '' ? 'role content' : 'role content output_config', path);
    const turn = newTurn(role === 'assistant' ? 'model' : 'user');
    const content =
      typeof message.content === 'string'
        ? [{ type: 'text', text: message.content }]
        : objectsOf(message.content, `${path}content`);
    // A message of the system may set the effort alone.
    rule(content.length > 0 || message.output_config !== undefined, `${path}content: empty`);
    for (const [at, block] of content.entries())
      readBlock(block, role, `${path}content.${at}.`, memory, turn);
    const results = content.filter(({ type }) => type === 'tool_result');
    const given = results.map((block) => String(block.tool_use_id));
    if (role === 'user') {
      for (const id of open) rule(given.includes(id), `${path}: tool_use ids without tool_result: ${id}`);
      for (const id of given)
        rule(open.includes(id), `${path}: unexpected tool_use_id in tool_result: ${id}`);
      rule(new Set(given).size === given.length, `${path}: a tool_result comes twice`);
      const first = content.findIndex(({ type }) => type !== 'tool_result');
      rule(first === -1 || first >= results.length, `${path}: something stands before a tool_result`);
    } else rule(open.length === 0 || role === 'system', `${path}: tool_use without tool_result: ${open}`);
    for (const id of turn.calls) {
      rule(!used.has(id), `${path}: tool_use ids must be unique`);
      used.add(id);
    }
    if (role !== 'system') open = turn.calls;
    turns.push(turn);
  }
  rule(open.length === 0, `messages: tool_use without tool_result: ${open}`);
  checkLast(messages, mustThink);
  return turns;
}

/** What precedes a message, apart from the marks of caches and the order of members, which the vendor's own SDK changes. */
function prefixOf(body: JsonObject, end: number): string {
  const { system, tools, messages } = body;
  const before = { system, tools, messages: objectsOf(messages, 'messages').slice(0, end) };
  return JSON.stringify(before, (name, value: unknown) => {
    if (name === 'cache_control') return undefined;
    return isObject(value) ? Object.fromEntries(Object.entries(value).sort()) : value;
  });
}

function checkPrefixes(body: JsonObject, memory: Memory): void {
  const drops = at(body, 'thinking', 'block_binding', 'prefix_mismatch_behavior') === 'drop_block';
  for (const [index, { content }] of objectsOf(body.messages, 'messages').entries()) {
    const thought = Array.isArray(content)
      ? content.filter(isObject).find(({ type }) => type === 'thinking')
      : undefined;
    const bound = memory.prefixes.get(String(thought?.signature));
    rule(
      drops || bound === undefined || bound === prefixOf(body, index),
      `messages.${index}: The block is bound to a different conversation`,
    );
  }
}

/** Binds the thinking of an answer to what its request consists of. */
export function bindThinking(body: JsonObject, { content }: JsonObject, memory: Memory): void {
  for (const block of Array.isArray(content) ? content.filter(isObject) : [])
    if (block.type === 'thinking' && Array.isArray(body.messages))
      memory.prefixes.set(String(block.signature), prefixOf(body, body.messages.length));
}

/** Checks that an unfinished turn begins with its thinking, and that a prefill does not end in white space. */
function checkLast(messages: readonly JsonObject[], mustThink: boolean): void {
  const last = messages.findLast(({ role }) => role === 'assistant');
  const content = Array.isArray(last?.content) ? objectsOf(last.content, 'messages') : [];
  const isUnderWay =
    Array.isArray(messages.at(-1)?.content) &&
    objectsOf(messages.at(-1)?.content, 'messages').some(({ type }) => type === 'tool_result');
  if (mustThink && isUnderWay)
    rule(
      content[0]?.type === 'thinking' || content[0]?.type === 'redacted_thinking',
      `messages: expected 'thinking', but found '${content[0]?.type}'`,
    );
  if (messages.at(-1) !== last) return;
  const text = typeof last?.content === 'string' ? last.content : content.at(-1)?.text;
  if (typeof text === 'string') rule(text.trimEnd() === text, 'messages: the last turn ends in white space');
}

function readBlock(block: JsonObject, role: string, path: string, memory: Memory, turn: AskedTurn): void {
  const type = textOf(block.type, `${path}type`);
  rule((roles[role] ?? '').split(' ').includes(type), `${path}type: '${type}' in ${role}`);
  onlyMembers(block, blocks[type] ?? '', path);
  switch (type) {
    case 'text':
      turn.texts.push(textOf(block.text, `${path}text`));
      rule(turn.texts.at(-1)?.trim() !== '', `${path}text: white space alone`);
      break;
    case 'image': {
      const source = objectOf(block.source, `${path}source`);
      if (source.type === 'base64') {
        onlyMembers(source, 'type media_type data', `${path}source.`);
        oneOf(source.media_type, 'image/png image/jpeg image/gif image/webp', `${path}source.media_type`);
        rule(/^[A-Za-z0-9+/]+=*$/.test(textOf(source.data, path)), `${path}source.data: not base64`);
      }
      turn.images++;
      break;
    }
    case 'tool_use':
      turn.calls.push(textOf(block.id, `${path}id`));
      checkNames([String(block.id)], /^[a-zA-Z0-9_-]+$/, `${path}id`);
      checkNames([String(block.name)], /^[a-zA-Z0-9_-]{1,128}$/, `${path}name`);
      objectOf(block.input, `${path}input`);
      break;
    case 'tool_result': {
      const content =
        typeof block.content === 'string' ? [] : objectsOf(block.content ?? [], `${path}content`);
      const inner = newTurn('user');
      const isText = content.every(({ type }) => type === 'text');
      rule(block.is_error !== true || isText, `${path}content: not only texts beside is_error`);
      for (const each of content) readBlock(each, 'user', `${path}content.`, memory, inner);
      turn.results.push(typeof block.content === 'string' ? block.content : inner.texts.join(''));
      break;
    }
    case 'thinking': {
      const words = memory.signed.get(textOf(block.signature, `${path}signature`));
      rule(words !== undefined, `${path}signature: Invalid signature in thinking block`);
      rule(words === block.thinking, `${path}thinking: not what was signed`);
      break;
    }
    case 'redacted_thinking':
      rule(memory.signed.has(String(block.data)), `${path}data: invalid`);
  }
}

/** Writes an answer like Anthropic. */
export function writeMessages(reply: Reply, asked: Asked, memory: Memory): Written {
  const words = asked.shows ? (reply.reasoning ?? '') : '';
  const calls = reply.calls ?? [];
  const content: JsonObject[] = [];
  if (reply.reasoning !== undefined && asked.thinks)
    content.push({ type: 'thinking', thinking: words, signature: sign(memory, words) });
  if (reply.text !== undefined) content.push({ type: 'text', text: reply.text });
  for (const { name, args } of calls)
    content.push({
      type: 'tool_use',
      id: `toolu_${++memory.count}`,
      name,
      input: args,
      caller: { type: 'direct' },
    });
  const message = {
    id: `msg_${++memory.count}`,
    type: 'message',
    role: 'assistant',
    model: asked.model,
    content,
    stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: 30,
      output_tokens: 20,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 5,
    },
  };
  const start = { ...message, content: [], stop_reason: null, usage: { ...message.usage, output_tokens: 1 } };
  return {
    body: message,
    events: [
      named({ type: 'message_start', message: start }),
      named({ type: 'ping' }),
      ...content.flatMap((block, index) => [
        named({ type: 'content_block_start', index, content_block: emptied(block) }),
        ...deltasOf(block).map((delta) => named({ type: 'content_block_delta', index, delta })),
        named({ type: 'content_block_stop', index }),
      ]),
      named({
        type: 'message_delta',
        delta: { stop_reason: message.stop_reason, stop_sequence: null },
        usage: { output_tokens: 20 },
      }),
      named({ type: 'message_stop' }),
    ],
  };
}

function emptied(block: JsonObject): JsonObject {
  if (block.type === 'thinking') return { type: 'thinking', thinking: '', signature: '' };
  return block.type === 'text' ? { ...block, text: '' } : { ...block, input: {} };
}

function deltasOf(block: JsonObject): readonly object[] {
  if (block.type === 'text') return pieces(String(block.text)).map((text) => ({ type: 'text_delta', text }));
  if (block.type === 'tool_use')
    return ['', ...pieces(JSON.stringify(block.input))].map((partial_json) => ({
      type: 'input_json_delta',
      partial_json,
    }));
  return [
    ...(block.thinking === '' ? [] : pieces(String(block.thinking))).map((thinking) => ({
      type: 'thinking_delta',
      thinking,
    })),
    { type: 'signature_delta', signature: block.signature },
  ];
}
