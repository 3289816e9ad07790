import type { JsonObject } from '../../../src/wire/json.js';
import { named } from '../events.js';
import { at } from '../json.js';
import {
  type Asked,
  type AskedTool,
  type AskedTurn,
  checkNames,
  checkOpenAiAnswer,
  checkOpenAiStrict,
  checkSchema,
  newTurn,
  objectOf,
  objectsOf,
  oneOf,
  onlyMembers,
  rule,
  textOf,
} from './asked.js';
import { checkDataUrl, checkMetadata, forcedBy } from './chat.js';
import { type Memory, sign } from './memory.js';
import { pieces, type Reply, type Written } from './reply.js';

const members =
  'model input background client_metadata context_management conversation include instructions max_output_tokens ' +
  'max_tool_calls metadata moderation parallel_tool_calls previous_response_id prompt prompt_cache_key ' +
  'prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options ' +
  'temperature text tool_choice tools top_logprobs top_p truncation user';
const items: Readonly<Record<string, string>> = {
  message: 'type id role content status phase',
  function_call: 'type id call_id name namespace arguments status caller',
  function_call_output: 'type id call_id output status caller',
  custom_tool_call: 'type id call_id name namespace input status caller',
  custom_tool_call_output: 'type id call_id output status caller',
  reasoning: 'type id summary content encrypted_content status',
  additional_tools: 'type id role tools',
  compaction: 'type id encrypted_content',
  configuration_update: 'type id reasoning text',
};
/** Prefixes of the ids of items that this vendor made. */
const prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  reasoning: 'rs',
  compaction: 'cmp',
};
const partsOfRole: Readonly<Record<string, string>> = {
  user: 'input_text input_image input_file',
  system: 'input_text input_image input_file',
  developer: 'input_text input_image input_file',
  assistant: 'output_text refusal',
};
const partMembers =
  'type text image_url file_id detail file_data file_url filename annotations logprobs refusal prompt_cache_breakpoint';

/**
 * Reads a responses request by the rules of https://platform.openai.com/docs/api-reference/responses/create.
 * @throws BrokenRule
 */
export function readResponses(body: JsonObject, memory: Memory): Asked {
  onlyMembers(body, members, '');
  checkSettings(body);
  const list =
    typeof body.input === 'string'
      ? [{ role: 'user', content: textOf(body.input, 'input') }]
      : objectsOf(body.input, 'input').map((item, index) => itemMeant(item, index, memory));
  rule(list.length > 0, 'input: empty');
  const added = list.filter(({ type }) => type === 'additional_tools');
  const tools = [
    ...readTools(body.tools, 'tools'),
    ...added.flatMap((item) => readTools(item.tools, 'input.tools')),
  ];
  checkNames(
    tools.map(({ name, namespace = '' }) => `${namespace}${name}`),
    /^[a-zA-Z0-9_-]{1,128}$/,
    'tools',
  );
  const include: readonly unknown[] = Array.isArray(body.include) ? body.include : [];
  const reasoning = objectOf(body.reasoning ?? {}, 'reasoning');
  return {
    wire: 'responses',
    model: textOf(body.model, 'model'),
    stream: body.stream === true,
    tools,
    forced: forcedBy(body.tool_choice, 'name'),
    turns: readItems(list, memory, body.store !== false),
    thinks: reasoning.effort !== 'none',
    schema: at(body, 'text', 'format', 'schema'),
    shows: typeof reasoning.summary === 'string',
    includes: include.includes('reasoning.encrypted_content'),
  };
}

/** Returns the item that a reference stands for. */
function itemMeant(item: JsonObject, index: number, memory: Memory): JsonObject {
  if (item.type !== 'item_reference') return item;
  const kept = memory.items.get(textOf(item.id, `input[${index}].id`));
  rule(kept !== undefined, `input[${index}].id: Item with id '${item.id}' not found`);
  return kept;
}

function checkSettings(body: JsonObject): void {
  rule(body.stream === true || body.stream_options === undefined, 'stream_options: without a stream');
  for (const name of ['user', 'prompt_cache_key', 'safety_identifier'])
    if (body[name] !== undefined && body[name] !== null) textOf(body[name], name, 64);
  if (body.metadata !== undefined) checkMetadata(body.metadata);
  if (typeof body.max_output_tokens === 'number')
    rule(body.max_output_tokens >= 16, 'max_output_tokens: below 16');
  const reasoning = objectOf(body.reasoning ?? {}, 'reasoning');
  onlyMembers(reasoning, 'effort summary generate_summary context mode', 'reasoning.');
  oneOf(reasoning.effort, 'none minimal low medium high xhigh max', 'reasoning.effort');
  oneOf(reasoning.summary, 'auto concise detailed', 'reasoning.summary');
  const text = objectOf(body.text ?? {}, 'text');
  onlyMembers(text, 'format verbosity', 'text.');
  if (at(text, 'format', 'strict') === true)
    checkOpenAiAnswer(at(text, 'format', 'schema'), 'text.format.schema');
  oneOf(text.verbosity, 'low medium high', 'text.verbosity');
  if (body.tools === undefined && !Array.isArray(body.input))
    rule(body.tool_choice === undefined || body.tool_choice === 'none', 'tool_choice: without tools');
}

function readTools(value: unknown, path: string, namespace?: string): readonly AskedTool[] {
  return objectsOf(value ?? [], path).flatMap((tool): readonly AskedTool[] => {
    if (tool.type === 'namespace')
      return readTools(tool.tools, `${path}.tools`, textOf(tool.name, `${path}.name`));
    if (tool.type !== 'function' && tool.type !== 'custom') return [];
    const custom = tool.type === 'custom';
    const name = textOf(tool.name, `${path}.name`, 64);
    onlyMembers(
      tool,
      custom ? 'type name description format' : 'type name description parameters strict defer_loading',
      `${path}.${name}.`,
    );
    if (!custom && tool.parameters !== null && tool.parameters !== undefined) {
      const schema = checkSchema(tool.parameters, 'openai', `${path}.${name}.parameters`);
      if (tool.strict === true) checkOpenAiStrict(schema, `${path}.${name}.parameters`);
    }
    return [{ name, custom, namespace, schema: tool.parameters }];
  });
}

function readItems(list: readonly JsonObject[], memory: Memory, isStored: boolean): AskedTurn[] {
  const turns: AskedTurn[] = [];
  const ids = new Set<string>();
  const turnOf = (role: AskedTurn['role']): AskedTurn => {
    const last = turns.at(-1);
    if (last?.role === role) return last;
    const turn = newTurn(role);
    turns.push(turn);
    return turn;
  };
  const called = new Set<string>();
  const answered = new Set<string>();
  for (const [index, item] of list.entries()) {
    const path = `input[${index}].`;
    const type = item.type === undefined ? 'message' : textOf(item.type, `${path}type`);
    const known = items[type];
    rule(known !== undefined, `${path}type: '${type}' is none`);
    onlyMembers(item, known, path);
    if (item.id !== undefined && item.id !== null) {
      const id = textOf(item.id, `${path}id`, 64);
      const prefix = prefixes[type] ?? '';
      rule(id.startsWith(prefix), `${path}id: Expected an ID that begins with '${prefix}', got '${id}'`);
      rule(!ids.has(id), `${path}id: Duplicate item found with id ${id}`);
      ids.add(id);
    }
    if (type === 'message') readMessage(item, path, turnOf);
    else if (type === 'compaction') checkSealed(item.encrypted_content, path, memory);
    else if (type === 'configuration_update') checkUpdate(item, path);
    else if (type === 'reasoning') {
      turnOf('model');
      checkReasoning(item, path, memory, isStored);
      const next = list[index + 1];
      const isFollowed = /^(?:function_call|custom_tool_call|reasoning)$/.test(String(next?.type));
      rule(
        isFollowed || next?.role === 'assistant',
        `${path}: a reasoning item without its required following item`,
      );
    } else if (type === 'function_call' || type === 'custom_tool_call') {
      const id = textOf(item.call_id, `${path}call_id`, 64);
      rule(!called.has(id), `${path}call_id: comes twice`);
      checkNames([textOf(item.name, `${path}name`)], /^[a-zA-Z0-9_-]{1,64}$/, `${path}name`);
      rule(typeof (item.arguments ?? item.input) === 'string', `${path}arguments: not a text`);
      called.add(id);
      turnOf('model').calls.push(id);
    } else if (type.endsWith('_output')) {
      const id = textOf(item.call_id, `${path}call_id`, 64);
      rule(called.has(id), `${path}: No tool call found for function call output with call_id ${id}`);
      answered.add(id);
      turnOf('user').results.push(outputOf(item.output, path));
    }
  }
  for (const id of called) rule(answered.has(id), `input: No tool output found for function call ${id}`);
  return turns;
}

function outputOf(output: unknown, path: string): string {
  if (typeof output === 'string') return output;
  return objectsOf(output, `${path}output`)
    .map((part) => {
      oneOf(part.type, 'input_text input_image input_file', `${path}output.type`);
      return typeof part.text === 'string' ? part.text : '';
    })
    .join('');
}

function readMessage(item: JsonObject, path: string, turnOf: (role: AskedTurn['role']) => AskedTurn): void {
  const role = textOf(item.role, `${path}role`);
  const known = partsOfRole[role];
  rule(known !== undefined, `${path}role: '${role}' is none`);
  const turn =
    role === 'system' || role === 'developer' ? newTurn('user') : turnOf(role === 'user' ? 'user' : 'model');
  if (typeof item.content === 'string') {
    turn.texts.push(item.content);
    return;
  }
  for (const part of objectsOf(item.content, `${path}content`)) {
    const type = textOf(part.type, `${path}content.type`);
    rule(known.split(' ').includes(type), `${path}content: Invalid value: '${type}' in ${role}`);
    onlyMembers(part, partMembers, `${path}content.`);
    if (typeof part.text === 'string') turn.texts.push(part.text);
    if (type === 'input_image') {
      if (part.file_id === undefined) checkDataUrl(part.image_url, `${path}content.image_url`);
      turn.images++;
    }
  }
}

function checkUpdate({ reasoning, text }: JsonObject, path: string): void {
  const given = objectOf(reasoning ?? {}, `${path}reasoning`);
  onlyMembers(given, 'effort', `${path}reasoning.`);
  oneOf(given.effort, 'none minimal low medium high xhigh max', `${path}reasoning.effort`);
  onlyMembers(objectOf(text ?? {}, `${path}text`), 'format', `${path}text.`);
}

function checkSealed(sealed: unknown, path: string, memory: Memory): void {
  rule(
    typeof sealed === 'string' && memory.signed.has(sealed),
    `${path}encrypted_content: could not be verified`,
  );
}

function checkReasoning(item: JsonObject, path: string, memory: Memory, isStored: boolean): void {
  for (const part of objectsOf(item.summary, `${path}summary`))
    rule(part.type === 'summary_text', `${path}summary: '${part.type}'`);
  const sealed = item.encrypted_content;
  if (typeof sealed === 'string') checkSealed(sealed, path, memory);
  else rule(isStored && typeof item.id === 'string', `${path}: Item not found. It was not persisted`);
}

/** Writes an answer like OpenAI. */
export function writeResponses(reply: Reply, asked: Asked, memory: Memory): Written {
  const output: JsonObject[] = [];
  const next = (prefix: string): string => `${prefix}_${++memory.count}`;
  if (reply.reasoning !== undefined && asked.thinks) {
    const summary = asked.shows ? [{ type: 'summary_text', text: reply.reasoning }] : [];
    const sealed = sign(memory, reply.reasoning);
    const extra = asked.includes ? { encrypted_content: sealed } : {};
    output.push({ id: next('rs'), type: 'reasoning', summary, ...extra });
  }
  if (reply.text !== undefined) {
    const content = [{ type: 'output_text', text: reply.text, annotations: [], logprobs: [] }];
    output.push({ id: next('msg'), type: 'message', status: 'completed', role: 'assistant', content });
  }
  for (const { name, namespace, args } of reply.calls ?? []) {
    const call = { call_id: next('call'), name, ...(namespace === undefined ? {} : { namespace }) };
    output.push(
      typeof args === 'string'
        ? { id: next('ctc'), type: 'custom_tool_call', status: 'completed', ...call, input: args }
        : {
            id: next('fc'),
            type: 'function_call',
            status: 'completed',
            ...call,
            arguments: JSON.stringify(args),
          },
    );
  }
  for (const item of output) memory.items.set(String(item.id), item);
  const usage = {
    input_tokens: 30,
    input_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
    output_tokens: 20,
    output_tokens_details: { reasoning_tokens: 8 },
    total_tokens: 50,
  };
  const response = {
    id: next('resp'),
    object: 'response',
    created_at: 1,
    status: 'completed',
    error: null,
    incomplete_details: null,
    instructions: null,
    model: asked.model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: true,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    truncation: 'disabled',
    usage,
    metadata: {},
  };
  const begun = { ...response, status: 'in_progress', output: [], usage: null };
  const events: JsonObject[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...output.flatMap((item, output_index) => itemEvents(item, output_index)),
    { type: 'response.completed', response },
  ];
  return {
    body: response,
    events: events.map((event, sequence_number) => named({ ...event, sequence_number })),
  };
}

function itemEvents(item: JsonObject, output_index: number): readonly JsonObject[] {
  const place = { item_id: item.id, output_index };
  const added = (begun: object) => ({
    type: 'response.output_item.added',
    output_index,
    item: { ...item, status: 'in_progress', ...begun },
  });
  const done = { type: 'response.output_item.done', output_index, item };
  if (item.type === 'function_call' || item.type === 'custom_tool_call') {
    const isCustom = item.type === 'custom_tool_call';
    const member = isCustom ? 'input' : 'arguments';
    const name = isCustom ? 'response.custom_tool_call_input' : 'response.function_call_arguments';
    return [
      added({ [member]: '' }),
      ...pieces(String(item[member])).map((delta) => ({ type: `${name}.delta`, ...place, delta })),
      { type: `${name}.done`, ...place, [member]: item[member] },
      done,
    ];
  }
  const isMessage = item.type === 'message';
  const parts = objectsOf(isMessage ? item.content : item.summary, 'parts');
  const [part, text, index] = isMessage
    ? ['response.content_part', 'response.output_text', 'content_index']
    : ['response.reasoning_summary_part', 'response.reasoning_summary_text', 'summary_index'];
  const logprobs = isMessage ? { logprobs: [] } : {};
  return [
    added(isMessage ? { content: [] } : { summary: [] }),
    ...parts.flatMap((each, at) => [
      { type: `${part}.added`, ...place, [index]: at, part: { ...each, text: '' } },
      ...pieces(String(each.text)).map((delta) => ({
        type: `${text}.delta`,
        ...place,
        [index]: at,
        delta,
        ...logprobs,
      })),
      { type: `${text}.done`, ...place, [index]: at, text: each.text, ...logprobs },
      { type: `${part}.done`, ...place, [index]: at, part: each },
    ]),
    done,
  ];
}
