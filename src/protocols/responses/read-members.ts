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
  ...['type', 'text', 'refusal', 'image_url', 'detail', 'file_id', 'file_data', 'file_url', 'filename'],
  ...['annotations', 'logprobs', 'prompt_cache_breakpoint'],
);
const message = shapeOf('type', 'role', 'id', 'status', 'phase', { content: part });
const output = shapeOf('type', 'id', 'call_id', 'caller', 'name', 'namespace', 'status', { output: part });
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
  const names = unreadMembers(body, readMembers, { truncation: 'disabled' });
  if (listOf(body.include).some((each) => typeof each === 'string' && !included.includes(each)))
    names.push('include');
  return names;
}
