/*
 * Parts of a conversation that only an upstream of this protocol understands, or none that is known here. They are left
 * out: an error would make the conversation unusable, since no client can remove them from it.
 */

/** Known types that are left out: items of tools that an upstream runs, and notes of agents. */
const items: readonly string[] = [
  'agent_message',
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'compaction',
  'compaction_summary',
  'computer_call',
  'computer_call_output',
  'context_compaction',
  'file_search_call',
  'ghost_snapshot',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'program',
  'program_output',
  'shell_call',
  'shell_call_output',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
];

const parts: readonly string[] = ['encrypted_content', 'input_audio', 'computer_screenshot', 'summary_text'];

/**
 * Returns the name under which an item is reported as left out: its type if that is known.
 * @param list the member with the item
 */
export function nameOfItem(type: unknown, list: 'input' | 'output' = 'input'): string {
  return items.find((known) => known === type) ?? list;
}

/** Returns the same for a part of a message or of an output. */
export function nameOfPart(type: unknown): string {
  return parts.find((known) => known === type) ?? 'content';
}
