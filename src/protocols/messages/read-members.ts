import { type Shape, wholes } from '../unread.js';
import { isSearchTool } from './search-tool.js';

/** What is read of each type of block. */
const blocks: Readonly<Record<string, Shape>> = {
  text: wholes('type', 'text'),
  image: wholes('type', 'source'),
  document: wholes('type', 'source', 'title', 'context'),
  search_result: wholes('type', 'source', 'title', 'content'),
  tool_use: wholes('type', 'id', 'name', 'input'),
  tool_result: { ...wholes('type', 'tool_use_id', 'is_error'), content: ({ type }) => blockOf(type) },
  // What becomes of these is in `server-blocks.ts`.
  compaction: wholes('type', 'content'),
  tool_reference: wholes('type', 'tool_name'),
  web_search_tool_result: {
    ...wholes('type', 'tool_use_id'),
    content: ({ type }) => (type === 'web_search_result' ? wholes('type', 'title', 'url') : true),
  },
};

function blockOf(type: unknown): Shape | true {
  return typeof type === 'string' && Object.hasOwn(blocks, type) ? (blocks[type] as Shape) : true;
}

const search = wholes(
  ...['type', 'name', 'max_uses', 'allowed_domains', 'blocked_domains', 'user_location'],
  // Who may call the search, and how it comes to be known: other vendors have neither.
  ...['allowed_callers', 'defer_loading'],
);

/** What `decode.ts` reads of a body; see `unreadMembers`. */
export const readMembers: Shape = {
  ...wholes(
    'model',
    'stream',
    'max_tokens',
    'temperature',
    'top_p',
    'top_k',
    'stop_sequences',
    'tool_choice',
  ),
  // What a thread holds is in the messages by then: see `thread.ts`.
  ...wholes('container', 'mcp_servers', 'thread'),
  metadata: wholes('user_id'),
  thinking: wholes('type', 'budget_tokens', 'display'),
  output_config: wholes('effort', 'format'),
  system: ({ type }) => blockOf(type),
  tools: ({ type }) => {
    if (isSearchTool(type)) return search;
    return (type ?? 'custom') === 'custom'
      ? wholes('type', 'name', 'description', 'input_schema', 'strict')
      : true;
  },
  messages: { role: true, content: ({ type }) => blockOf(type) },
};
