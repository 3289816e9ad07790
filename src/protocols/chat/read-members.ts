import { reasoningNames } from '../../conversation/unsigned-reasoning.js';
import { isObject, type JsonObject, objectOf } from '../../wire/json.js';
import { servingMembers } from '../openai-shared/settings.js';
import { type Shape, shapeOf } from '../unsupported.js';
import { isSwitchedOff } from './reasoning.js';

const definition = shapeOf('name', 'description', 'parameters', 'strict', 'format', 'cache_control');

const part = shapeOf('type', 'text', 'refusal', 'input_audio', 'cache_control', 'prompt_cache_breakpoint', {
  image_url: shapeOf('url', 'detail'),
  file: shapeOf('file_data', 'file_id', 'filename'),
});

/** The `annotations` of an answer that a client sends back in the history are not part of its content. */
const message = shapeOf(
  ...['role', 'refusal', 'audio', 'tool_call_id', 'function_call', 'annotations', 'cache_control'],
  ...reasoningNames,
  {
    content: part,
    tool_calls: shapeOf('id', 'type', 'index', 'custom', 'extra_content', {
      function: shapeOf('name', 'arguments'),
    }),
  },
);
/** The `name` of this message is the function's. */
const functionMessage = shapeOf(message, 'name');

const tool = shapeOf('type', 'cache_control', { function: definition, custom: definition });

const thinking = shapeOf('type', 'budget_tokens');
/** See `decodeReasoning`. */
const thinkingOff = shapeOf('budget_tokens');

const plainFormat = shapeOf('type');
const freeFormat = shapeOf('type', 'schema');
const namedFormat = shapeOf('type', { json_schema: shapeOf('name', 'description', 'schema', 'strict') });

/** Returns OpenAI's member of a `response_format` with its schema, or null if it has none. */
export function namedSchema({ type, json_schema }: JsonObject): JsonObject | null {
  const named = objectOf(json_schema);
  return type === 'json_schema' && hasMembers(named.schema) ? named : null;
}

export function hasMembers(schema: unknown): schema is JsonObject {
  return isObject(schema) && Object.keys(schema).length > 0;
}

const whileOff: Shape = shapeOf(
  ...['model', 'stream', 'max_completion_tokens', 'max_tokens', 'temperature', 'top_p', 'n', 'stop'],
  ...['seed', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs', 'top_logprobs'],
  ...['user', 'safety_identifier', 'verbosity', 'modalities'],
  ...['tool_choice', 'parallel_tool_calls', 'function_call', 'enable_thinking', 'thinking_budget'],
  ...servingMembers,
  {
    web_search_options: shapeOf('user_location', 'search_context_size'),
    stream_options: shapeOf('include_usage', 'include_obfuscation'),
    reasoning: shapeOf('effort', 'max_tokens', 'enabled', 'exclude'),
    thinking: ({ type }) => (type === 'disabled' ? thinkingOff : thinking),
    response_format: (format) => {
      if (format.type === 'text') return plainFormat;
      return namedSchema(format) === null ? freeFormat : namedFormat;
    },
    usage: shapeOf('include'),
    functions: definition,
    tools: ({ type }) => (type === 'function' || type === 'custom' ? tool : true),
    messages: ({ role }) => (role === 'function' || role === 'tool' ? functionMessage : message),
  },
);
/** `reasoningEffort` is accepted with the same value alone. */
const whileOn: Shape = shapeOf(whileOff, 'reasoning_effort', 'reasoningEffort');

/** What `decode.ts` reads of a body; see `unreadMembers`. */
export function readMembers(body: JsonObject): Shape {
  const ignoresEffort = isSwitchedOff(body) && body.reasoning_effort !== 'none';
  return ignoresEffort ? whileOff : whileOn;
}
