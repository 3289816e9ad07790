import type { JsonObject } from '../../wire/json.js';
import { type Shape, shapeOf } from '../unsupported.js';
import { clientFunctionOf } from './client-tools.js';
import { isSearchTool } from './search-blocks.js';

const searchResult = shapeOf('type', 'title', 'url');

/** What is read of each type of block. */
const blocks: Readonly<Record<string, Shape>> = {
  text: shapeOf('type', 'text'),
  image: shapeOf('type', 'source'),
  document: shapeOf('type', 'title', 'context', {
    source: ({ type }) => (type === 'content' ? documentOfBlocks : true),
  }),
  search_result: shapeOf('type', 'source', 'title', { content: ({ type }) => blockOf(type) }),
  tool_use: shapeOf('type', 'id', 'name', 'input'),
  tool_result: shapeOf('type', 'tool_use_id', 'is_error', { content: ({ type }) => blockOf(type) }),
  // `server-blocks.ts` handles these.
  compaction: shapeOf('type', 'content', 'tool_changes'),
  tool_reference: shapeOf('type', 'tool_name'),
  web_search_tool_result: shapeOf('type', 'tool_use_id', {
    content: ({ type }) => (type === 'web_search_result' ? searchResult : true),
  }),
};

const documentOfBlocks = shapeOf('type', { content: ({ type }) => blockOf(type) });

function blockOf(type: unknown): Shape | true {
  return typeof type === 'string' && Object.hasOwn(blocks, type) ? (blocks[type] as Shape) : true;
}

/** Types of blocks whose marks for prompt caches are read, outside of messages of the assistant. */
const markable = ['text', 'image', 'document', 'search_result', 'tool_result'];
const markedBlocks: Readonly<Record<string, Shape>> = {
  ...blocks,
  ...Object.fromEntries(
    Object.entries(blocks)
      .filter(([type]) => markable.includes(type))
      .map(([type, shape]) => {
        const content = type === 'tool_result' ? [{ content: markedBlockOf }] : [];
        return [type, shapeOf(shape, 'cache_control', ...content)];
      }),
  ),
};

function markedBlockOf({ type }: JsonObject): Shape | true {
  return typeof type === 'string' && Object.hasOwn(markedBlocks, type) ? (markedBlocks[type] as Shape) : true;
}

const answered = shapeOf('role', { content: ({ type }) => blockOf(type) });
const asked = shapeOf('role', { content: markedBlockOf });
const ordered = shapeOf(asked, 'clear_at', { output_config: shapeOf('effort') });

function messageOf({ role }: JsonObject): Shape {
  if (role === 'assistant') return answered;
  return role === 'system' ? ordered : asked;
}

const search = shapeOf(
  ...['type', 'name', 'max_uses', 'allowed_domains', 'blocked_domains', 'user_location'],
  // The tools that may call the search, and its deferred loading: other vendors have neither.
  ...['allowed_callers', 'defer_loading'],
);

const clientTool = shapeOf('type', 'name', 'max_characters');
const tool = shapeOf('type', 'name', 'description', 'input_schema', 'strict');

/** What `decode.ts` reads of a body; see `unreadMembers`. */
export const readMembers: Shape = shapeOf(
  ...['model', 'stream', 'max_tokens', 'temperature', 'top_p', 'top_k', 'stop_sequences', 'tool_choice'],
  // The content of a thread has been added to the messages by then: see `conversation.ts`.
  ...['container', 'mcp_servers', 'thread', 'output_format'],
  {
    compaction: shapeOf('type', 'instructions'),
    metadata: shapeOf('user_id'),
    thinking: shapeOf('type', 'budget_tokens', 'display'),
    output_config: shapeOf('effort', 'format'),
    system: markedBlockOf,
    tools: (declared) => {
      const type = declared.type ?? 'custom';
      if (isSearchTool(type)) return search;
      if (type === 'custom') return tool;
      return clientFunctionOf(declared) === null ? true : clientTool;
    },
    messages: messageOf,
  },
);
