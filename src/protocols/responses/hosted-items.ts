/** What the names of items begin with that a tool of the upstream's own, and its output, have in a conversation. */
const prefixes: readonly string[] = [
  'web_search_',
  'file_search_',
  'code_interpreter_',
  'image_generation_',
  'computer_',
  'mcp_',
  'local_shell_',
  'shell_',
  'apply_patch_',
  'tool_search_',
];

/** Whether an item of a conversation belongs to a tool that only an upstream of the protocol runs. */
export function isHostedItem(type: unknown): type is string {
  return typeof type === 'string' && prefixes.some((prefix) => type.startsWith(prefix));
}
