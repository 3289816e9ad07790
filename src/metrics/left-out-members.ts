import { otherLabel } from './families.js';

/**
 * Members whose loss is counted by name, the last name of a path alone; all others are one. A client is free to invent
 * names, and these are the ones that clients of the text protocols send, and that their upstreams answer with.
 */
const counted: ReadonlySet<string> = new Set([
  ...['cache_control', 'citations', 'context_management', 'defer_loading', 'eager_input_streaming', 'name'],
  ...[
    'service_tier',
    'metadata',
    'prompt_cache_key',
    'prompt_cache_options',
    'prompt_cache_retention',
    'store',
  ],
  ...['temperature', 'top_p', 'top_k', 'seed', 'presence_penalty', 'frequency_penalty', 'verbosity', 'user'],
  ...['user_id', 'parallel_tool_calls', 'disable_parallel_tool_use', 'strict', 'detail', 'truncation'],
  ...['max_tool_calls', 'include', 'phase', 'client_metadata', 'prediction', 'moderation'],
  ...['reasoning_content', 'signature', 'encrypted_content', 'thoughtSignature', 'web_search_options'],
  ...['topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'mediaResolution', 'safetySettings', 'labels'],
  ...['allowed_domains', 'blocked_domains', 'user_location', 'max_uses', 'search_context_size'],
  ...['external_web_access', 'excludeDomains', 'tool_choice', 'server_tool_use', 'web_search_tool_result'],
  ...['anyOf', 'oneOf', 'allOf', 'additionalProperties', 'pattern', 'format', 'multipleOf'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems'],
  // Of answers.
  ...['web_search_call', 'annotations', 'logprobs', 'stop_sequence', 'groundingChunks', 'groundingSupports'],
  ...['inlineData', 'executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse', 'audio'],
  ...['code_execution_tool_result', 'bash_code_execution_tool_result', 'web_fetch_tool_result'],
  ...['mcp_tool_use', 'mcp_tool_result', 'tool_search_tool_result', 'container_upload', 'compaction'],
  ...['file_search_call', 'code_interpreter_call', 'image_generation_call', 'mcp_call', 'shell_call'],
  ...[
    'googleSearch',
    'web_search',
    'file_search',
    'code_interpreter',
    'mcp',
    'tool_search',
    'image_generation',
  ],
]);

/** The label value for a name of `LeftOut`. */
export function leftOutLabel(name: string): string {
  const last = name.slice(name.lastIndexOf('.') + 1);
  return counted.has(last) ? last : otherLabel;
}
