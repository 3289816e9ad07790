import type { JsonObject } from '../../../src/wire/json.js';
import { unnamed } from '../events.js';
import { at } from '../json.js';
import {
  type Asked,
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
import type { Memory } from './memory.js';
import { pieces, type Reply, type Written } from './reply.js';

const members =
  'messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens ' +
  'metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key ' +
  'prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier ' +
  'stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options';
const parts: Readonly<Record<string, string>> = {
  text: 'type text prompt_cache_breakpoint',
  image_url: 'type image_url prompt_cache_breakpoint',
  input_audio: 'type input_audio prompt_cache_breakpoint',
  file: 'type file prompt_cache_breakpoint',
  refusal: 'type refusal',
};
const partsOfRole: Readonly<Record<string, string>> = {
  system: 'text',
  developer: 'text',
  user: 'text image_url input_audio file',
  assistant: 'text refusal',
  tool: 'text',
};
const membersOfRole: Readonly<Record<string, string>> = {
  system: 'role content name',
  developer: 'role content name',
  user: 'role content name',
  assistant: 'role content name refusal audio function_call tool_calls reasoning_content annotations',
  // The vendor's own examples name the function there (https://github.com/openai/openai-cookbook, function calling).
  tool: 'role content tool_call_id name',
};

/**
 * Reads a chat request by the rules of https://platform.openai.com/docs/api-reference/chat/create. Also demands
 * reasoning back with the calls that came with it, like https://api-docs.deepseek.com/guides/thinking_mode.
 * @throws BrokenRule
 */
export function readChat(body: JsonObject, memory: Memory): Asked {
  onlyMembers(body, members, '');
  checkSettings(body);
  const tools = readTools(body);
  const turns = readMessages(objectsOf(body.messages, 'messages'), memory);
  const options = body.stream_options;
  return {
    wire: 'chat',
    model: textOf(body.model, 'model'),
    stream: body.stream === true,
    tools,
    forced: forcedBy(body.tool_choice, 'function', 'name'),
    turns,
    thinks: body.reasoning_effort !== undefined && body.reasoning_effort !== 'none',
    shows: true,
    schema: at(body, 'response_format', 'json_schema', 'schema'),
    includes: options !== undefined && objectOf(options, 'stream_options').include_usage === true,
  };
}

/** @param path of the name in a choice that has one */
export function forcedBy(choice: unknown, ...path: readonly string[]): string | boolean {
  const name = at(choice, ...path);
  return typeof name === 'string' ? name : choice === 'required';
}

function checkSettings(body: JsonObject): void {
  rule(body.stream === true || body.stream_options === undefined, 'stream_options: without a stream');
  rule(
    body.max_tokens === undefined || body.max_completion_tokens === undefined,
    'max_tokens and max_completion_tokens',
  );
  for (const name of ['user', 'prompt_cache_key', 'safety_identifier'])
    if (body[name] !== undefined) textOf(body[name], name, 64);
  oneOf(body.reasoning_effort, 'none minimal low medium high xhigh max', 'reasoning_effort');
  oneOf(body.verbosity, 'low medium high', 'verbosity');
  oneOf(body.service_tier, 'auto default flex scale priority fast', 'service_tier');
  if (Array.isArray(body.stop)) rule(body.stop.length <= 4, 'stop: more than 4');
  if (body.metadata !== undefined) checkMetadata(body.metadata);
  if (at(body, 'response_format', 'json_schema', 'strict') === true)
    checkOpenAiAnswer(
      at(body, 'response_format', 'json_schema', 'schema'),
      'response_format.json_schema.schema',
    );
}

/** @throws BrokenRule for metadata that OpenAI does not accept */
export function checkMetadata(value: unknown): void {
  const pairs = Object.entries(value === null ? {} : objectOf(value, 'metadata'));
  rule(pairs.length <= 16, 'metadata: more than 16 pairs');
  for (const [name, text] of pairs) {
    rule(name.length <= 64, `metadata.${name}: its name is too long`);
    rule(typeof text === 'string' && text.length <= 512, `metadata.${name}: not a text of 512 characters`);
  }
}

function readTools(body: JsonObject): Asked['tools'] {
  if (body.tools === undefined) {
    rule(body.tool_choice === undefined || body.tool_choice === 'none', 'tool_choice: without tools');
    rule(body.parallel_tool_calls === undefined, 'parallel_tool_calls: without tools');
    return [];
  }
  const tools = objectsOf(body.tools, 'tools');
  rule(tools.length > 0 && tools.length <= 128, 'tools: not between 1 and 128');
  const read = tools.map((tool, index) => {
    const path = `tools[${index}].`;
    oneOf(tool.type, 'function custom', `${path}type`);
    if (tool.type === 'custom') {
      onlyMembers(tool, 'type custom', path);
      const custom = objectOf(tool.custom, `${path}custom`);
      onlyMembers(custom, 'name description format', `${path}custom.`);
      return { name: textOf(custom.name, `${path}custom.name`), custom: true, namespace: undefined };
    }
    onlyMembers(tool, 'type function', path);
    const declared = objectOf(tool.function, `${path}function`);
    onlyMembers(declared, 'name description parameters strict', `${path}function.`);
    if (declared.parameters !== undefined) {
      const schema = checkSchema(declared.parameters, 'openai', `${path}function.parameters`);
      if (declared.strict === true) checkOpenAiStrict(schema, `${path}function.parameters`);
    }
    return {
      name: textOf(declared.name, `${path}function.name`),
      custom: false,
      namespace: undefined,
      schema: declared.parameters,
    };
  });
  checkNames(
    read.map(({ name }) => name),
    /^[a-zA-Z0-9_-]{1,64}$/,
    'tools',
  );
  return read;
}

function readMessages(messages: readonly JsonObject[], memory: Memory): AskedTurn[] {
  rule(messages.length > 0, 'messages: none');
  const turns: AskedTurn[] = [];
  let open: string[] = [];
  const currentFrom = messages.findLastIndex(({ role }) => role === 'user');
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}].`;
    const role = textOf(message.role, `${path}role`);
    const known = membersOfRole[role];
    rule(known !== undefined, `${path}role: '${role}' is none`);
    onlyMembers(message, known, path);
    if (role === 'tool') {
      const id = textOf(message.tool_call_id, `${path}tool_call_id`, 40);
      rule(open.includes(id), `${path}: a tool message without a call '${id}' just before it`);
      open = open.filter((each) => each !== id);
      const turn = newTurn('user');
      readContent(message, role, path, turn);
      turn.results.push(turn.texts.splice(0).join(''));
      turns.push(turn);
      continue;
    }
    rule(open.length === 0, `${path}: no tool message has come for ${open}`);
    if (role === 'system' || role === 'developer') readContent(message, role, path, newTurn('user'));
    else {
      const turn = newTurn(role === 'user' ? 'user' : 'model');
      if (role === 'assistant') open = readCalls(message, path, turn);
      readContent(message, role, path, turn);
      if (role === 'assistant')
        checkReasoning({ message, turn, path, isCurrent: index > currentFrom }, memory);
      turns.push(turn);
    }
  }
  rule(open.length === 0, `messages: no tool message has come for ${open}`);
  return turns;
}

function readContent(message: JsonObject, role: string, path: string, turn: AskedTurn): void {
  const { content } = message;
  if (content === undefined || content === null) {
    rule(
      role === 'assistant' && (turn.calls.length > 0 || message.refusal !== undefined),
      `${path}content: none`,
    );
    return;
  }
  if (typeof content === 'string') {
    turn.texts.push(content);
    return;
  }
  const list = objectsOf(content, `${path}content`);
  rule(list.length > 0, `${path}content: empty`);
  for (const part of list) {
    const type = textOf(part.type, `${path}content.type`);
    rule((partsOfRole[role] ?? '').split(' ').includes(type), `${path}content: '${type}' in ${role}`);
    onlyMembers(part, parts[type] ?? '', `${path}content.`);
    if (type === 'text') turn.texts.push(String(part.text));
    if (type === 'image_url') {
      const image = objectOf(part.image_url, `${path}content.image_url`);
      onlyMembers(image, 'url detail', `${path}content.image_url.`);
      checkDataUrl(image.url, `${path}content.image_url.url`);
      turn.images++;
    }
  }
}

/** @throws BrokenRule for anything but the URL of an image */
export function checkDataUrl(url: unknown, path: string): void {
  rule(
    /^(?:https?:\/\/|data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$)/.test(textOf(url, path)),
    path,
  );
}

/** @returns the ids of the calls, which must be answered next */
function readCalls(message: JsonObject, path: string, turn: AskedTurn): string[] {
  if (message.tool_calls !== undefined) {
    const calls = objectsOf(message.tool_calls, `${path}tool_calls`);
    rule(calls.length > 0, `${path}tool_calls: empty`);
    for (const call of calls) {
      onlyMembers(call, 'id type function custom', `${path}tool_calls.`);
      turn.calls.push(textOf(call.id, `${path}tool_calls.id`, 40));
      const called = objectOf(call.function ?? call.custom, `${path}tool_calls.function`);
      onlyMembers(called, 'name arguments input', `${path}tool_calls.function.`);
      checkNames([textOf(called.name, `${path}name`)], /^[a-zA-Z0-9_-]{1,64}$/, path);
      rule(typeof (called.arguments ?? called.input) === 'string', `${path}arguments: not a text`);
    }
    rule(new Set(turn.calls).size === turn.calls.length, `${path}tool_calls: an id comes twice`);
  }
  return [...turn.calls];
}

interface Spoken {
  readonly message: JsonObject;
  readonly turn: AskedTurn;
  readonly path: string;
  /** Whether it belongs to the current turn, whose reasoning must not be lost. */
  readonly isCurrent: boolean;
}

function checkReasoning({ message, turn, path, isCurrent }: Spoken, memory: Memory): void {
  const wanted = turn.calls.map((id) => memory.reasons.get(id)).find((words) => words !== undefined);
  const given = message.reasoning_content;
  if (wanted !== undefined && (isCurrent || given !== undefined))
    rule(given === wanted, `${path}reasoning_content: not what came with the calls`);
  else if (given !== undefined)
    rule([...memory.reasons.values()].includes(String(given)), `${path}reasoning_content: never given out`);
}

/** Writes an answer like a chat upstream that reports its reasoning, which OpenAI's models do not. */
export function writeChat(reply: Reply, asked: Asked, memory: Memory): Written {
  const id = `chatcmpl-${++memory.count}`;
  const head = { id, created: 1, model: asked.model, system_fingerprint: 'fp_1', service_tier: 'default' };
  const calls = (reply.calls ?? []).map(({ name, args }) => {
    const text = typeof args === 'string' ? args : JSON.stringify(args);
    return { id: `call_${++memory.count}`, type: 'function', function: { name, arguments: text } };
  });
  const { text } = reply;
  const reasoning = asked.model.startsWith('gpt-') ? undefined : reply.reasoning;
  if (reasoning !== undefined) for (const call of calls) memory.reasons.set(call.id, reasoning);
  if (reasoning !== undefined && calls.length === 0) memory.reasons.set(id, reasoning);
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  const usage = {
    prompt_tokens: 30,
    completion_tokens: 20,
    total_tokens: 50,
    prompt_tokens_details: { cached_tokens: 5, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning === undefined ? 0 : 8 },
  };
  const chunk = (delta: object, finish_reason: string | null = null): string =>
    unnamed({
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      ...(asked.includes ? { usage: null } : {}),
    });
  return {
    body: {
      ...head,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: text ?? null,
            refusal: null,
            annotations: [],
            ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
            ...(calls.length === 0 ? {} : { tool_calls: calls }),
          },
          logprobs: null,
          finish_reason: finish,
        },
      ],
      usage,
    },
    events: [
      chunk({ role: 'assistant', content: '', refusal: null }),
      ...pieces(reasoning ?? '').map((piece) => chunk({ content: null, reasoning_content: piece })),
      ...pieces(text ?? '').map((piece) => chunk({ content: piece })),
      ...calls.flatMap(({ function: called, ...call }, index) => [
        chunk({ tool_calls: [{ index, ...call, function: { name: called.name, arguments: '' } }] }),
        ...pieces(called.arguments).map((piece) =>
          chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
        ),
      ]),
      chunk({}, finish),
      ...(asked.includes ? [unnamed({ ...head, object: 'chat.completion.chunk', choices: [], usage })] : []),
      'data: [DONE]\n\n',
    ],
  };
}
