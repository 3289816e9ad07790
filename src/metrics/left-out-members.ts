import { otherLabel } from './families.js';

/**
 * Members whose loss is counted by name, the last name of a path alone; all others are one. A client is free to invent
 * names, and these are the ones that clients of the four text protocols send.
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
