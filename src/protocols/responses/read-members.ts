import { type JsonObject, listOf } from '../../wire/json.js';
import { servingMembers } from '../openai-shared/serving.js';
import { type Shape, unreadMembers, wholes } from '../unread.js';
import { includedSources, isSearchTool } from './search-tool.js';

const definition = wholes('type', 'name', 'description', 'parameters', 'strict', 'format');

const search: Shape = {
  ...wholes('type', 'user_location', 'search_context_size', 'external_web_access'),
  filters: wholes('allowed_domains', 'blocked_domains'),
};

/** Of an answer that comes back in the history some members say nothing to the model. */
const message: Shape = {
  ...wholes('type', 'role', 'id', 'status', 'phase'),
  content: wholes(
    ...['type', 'text', 'refusal', 'image_url', 'detail', 'file_id', 'file_data', 'file_url', 'filename'],
    ...['annotations', 'logprobs'],
  ),
};

function toolOf({ type }: JsonObject): Shape | true {
  if (type === 'namespace') return { ...wholes('type', 'name'), tools: toolOf };
  if (isSearchTool(type)) return search;
  return type === 'function' || type === 'custom' ? definition : true;
}

/** What `decode.ts` reads of a body. */
const readMembers: Shape = {
  ...wholes(
    'model',
    'stream',
    'instructions',
    'previous_response_id',
    'conversation',
    'prompt',
    'background',
  ),
  ...wholes('max_output_tokens', 'temperature', 'top_p', 'tool_choice', 'parallel_tool_calls', 'include'),
  ...wholes('top_logprobs', 'store', 'user', 'safety_identifier'),
  ...wholes(...servingMembers),
  stream_options: wholes('include_obfuscation'),
  text: wholes('format', 'verbosity'),
  reasoning: wholes('effort', 'summary', 'generate_summary'),
  tools: toolOf,
  input: ({ type }) => ((type ?? 'message') === 'message' ? message : true),
};

/** What can be asked for by `include` of any upstream. */
const included = ['message.output_text.logprobs', 'reasoning.encrypted_content', includedSources];

/** Names of what a body has that is not read; see `unreadMembers`. */
export function unreadOf(body: JsonObject): string[] {
  const names = unreadMembers(body, readMembers, { truncation: 'disabled' });
  if (listOf(body.include).some((each) => typeof each === 'string' && !included.includes(each)))
    names.push('include');
  return names;
}
