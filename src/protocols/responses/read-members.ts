import { type JsonObject, listOf } from '../../wire/json.js';
import { servingMembers } from '../openai-shared/settings.js';
import { type Shape, shapeOf, unreadMembers } from '../unsupported.js';
import { updateType } from './configuration.js';
import { includedSources, isSearchTool } from './search-item.js';

const definition = shapeOf('type', 'name', 'description', 'parameters', 'strict', 'format');

const search = shapeOf('type', 'user_location', 'search_context_size', 'external_web_access', {
  filters: shapeOf('allowed_domains', 'blocked_domains'),
});

/** Some members of an answer in the history have no meaning for the model. */
const part = shapeOf(
  ...['type', 'text', 'refusal', 'image_url', 'file_id', 'file_data', 'file_url', 'filename'],
  ...['annotations', 'logprobs', 'prompt_cache_breakpoint'],
);
const imagePart = shapeOf(part, 'detail');

function partOf({ type }: JsonObject): Shape {
  return type === 'input_image' ? imagePart : part;
}

const message = shapeOf('type', 'role', 'id', 'status', 'phase', { content: partOf });
/** A call that its model made itself (`direct`) has no other member there. */
const called = shapeOf('type', 'id', 'call_id', 'name', 'namespace', 'status', { caller: shapeOf('type') });
const call = shapeOf(called, 'arguments', 'input');
const output = shapeOf(called, { output: partOf });
const broughtTools = shapeOf('type', 'role', 'id', 'call_id', 'execution', 'status', { tools: toolOf });

const update = shapeOf('type', 'id', { reasoning: shapeOf('effort'), text: shapeOf('format') });

const namespace = shapeOf('type', 'name', { tools: toolOf });

function toolOf({ type }: JsonObject): Shape | true {
  if (type === 'namespace') return namespace;
  if (isSearchTool(type)) return search;
  return type === 'function' || type === 'custom' ? definition : true;
}

function itemOf({ type }: JsonObject): Shape | true {
  switch (type ?? 'message') {
    case 'message':
      return message;
    case 'function_call':
    case 'custom_tool_call':
      return call;
    case 'function_call_output':
    case 'custom_tool_call_output':
      return output;
    case 'additional_tools':
    case 'tool_search_output':
      return broughtTools;
    case updateType:
      return update;
    default:
      return true;
  }
}

/** What `decode.ts` reads of a body. */
const readMembers = shapeOf(
  ...['model', 'stream', 'instructions', 'previous_response_id', 'conversation', 'prompt', 'background'],
  ...['max_output_tokens', 'temperature', 'top_p', 'tool_choice', 'parallel_tool_calls', 'include'],
  ...['top_logprobs', 'store', 'user', 'safety_identifier'],
  ...servingMembers,
  {
    stream_options: shapeOf('include_obfuscation'),
    text: shapeOf('format', 'verbosity'),
    reasoning: shapeOf('effort', 'summary', 'generate_summary'),
    tools: toolOf,
    input: itemOf,
  },
);

/** Values of `include` that any upstream can fulfil. */
const included = ['message.output_text.logprobs', 'reasoning.encrypted_content', includedSources];

/** Returns the names of a body's members that are not read; see `unreadMembers`. */
export function unreadOf(body: JsonObject): string[] {
  const names = unreadMembers(body, readMembers, { truncation: 'disabled', detail: 'auto' });
  if (listOf(body.include).some((each) => typeof each === 'string' && !included.includes(each)))
    names.push('include');
  return names;
}
