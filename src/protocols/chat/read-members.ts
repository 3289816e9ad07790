import { reasoningNames } from '../../conversation/unsigned-reasoning.js';
import { servingMembers } from '../openai-shared/serving.js';
import { type Shape, wholes } from '../unread.js';

const definition = wholes('name', 'description', 'parameters', 'strict', 'format', 'cache_control');

const part: Shape = {
  ...wholes('type', 'text', 'refusal', 'input_audio', 'cache_control'),
  image_url: wholes('url', 'detail'),
  file: wholes('file_data', 'file_id', 'filename'),
};

/** Of an answer that comes back in the history its `annotations` are no part. */
const message: Shape = {
  ...wholes('role', 'refusal', 'audio', 'tool_call_id', 'function_call', 'annotations', 'cache_control'),
  ...wholes(...reasoningNames),
  content: part,
  tool_calls: {
    ...wholes('id', 'type', 'index', 'custom', 'extra_content'),
    function: wholes('name', 'arguments'),
  },
};
/** Its name is that of the function. */
const functionMessage: Shape = { ...message, name: true };

/** What `decode.ts` reads of a body; see `unreadMembers`. */
export const readMembers: Shape = {
  ...wholes('model', 'stream', 'max_completion_tokens', 'max_tokens', 'temperature', 'top_p', 'n', 'stop'),
  ...wholes('seed', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs', 'top_logprobs'),
  ...wholes('user', 'safety_identifier', 'reasoning_effort', 'verbosity', 'response_format', 'modalities'),
  ...wholes('tool_choice', 'parallel_tool_calls', 'function_call'),
  web_search_options: wholes('user_location', 'search_context_size'),
  ...wholes(...servingMembers),
  stream_options: wholes('include_usage', 'include_obfuscation'),
  functions: definition,
  tools: ({ type }) =>
    type === 'function' || type === 'custom'
      ? { ...wholes('type', 'cache_control'), function: definition, custom: definition }
      : true,
  messages: ({ role }) => (role === 'function' || role === 'tool' ? functionMessage : message),
};
