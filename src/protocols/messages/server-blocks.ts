import { isObject, type JsonObject, listOf, textOrNull } from '../../wire/json.js';
import { blockTypes } from './request/schema.js';

/*
 * Blocks of a history that only the vendor's servers can read: the work of its tools, and types that are newer than
 * this decoder. Refusing them would make the conversation unusable, since a client cannot remove them from its history.
 * What a model can use of them becomes a text, and the rest is left out. Source:
 * https://platform.claude.com/docs/en/api/messages (types of content blocks).
 */

const known: readonly string[] = [
  'advisor_tool_result',
  'bash_code_execution_tool_result',
  'browser_state',
  'code_execution_tool_result',
  'compaction',
  'container_upload',
  'fallback',
  'mcp_tool_listing',
  'mcp_tool_result',
  'mcp_tool_use',
  'server_tool_use',
  'text_editor_code_execution_tool_result',
  'tool_reference',
  'tool_search_tool_result',
  'web_fetch_tool_result',
  'web_search_tool_result',
];

/** Returns the name under which a block is reported as left out: its type if that is known. */
export function nameOfBlock(type: unknown): string {
  return known.find((each) => each === type) ?? 'content';
}

/** Most results of one search that are listed. */
const mostResults = 20;

/** Tells whether a block is of a type that is not translated. A block without a type is malformed instead. */
export function isServerBlock({ type }: JsonObject): boolean {
  return typeof type === 'string' && !blockTypes.includes(type);
}

/**
 * Returns what a model can use of a block.
 * @param block see `isServerBlock`
 * @param leftOut receives the block's type, or `content` for an unknown one, if the text does not contain all of it
 * @returns null for a block that is left out
 */
export function serverBlockText(block: JsonObject, leftOut: Set<string>): string | null {
  const text = textOf(block, leftOut);
  if (text === null) leftOut.add(nameOfBlock(block.type));
  return text;
}

function textOf(block: JsonObject, leftOut: Set<string>): string | null {
  switch (block.type) {
    case 'compaction':
      // Null if the vendor could not make a summary.
      return textUnlessBlank(block.content);
    case 'tool_reference': {
      const name = textUnlessBlank(block.tool_name);
      return name === null ? null : `Found tool: ${name}`;
    }
    case 'web_search_tool_result':
      return listed(block.content, leftOut);
    default:
      return null;
  }
}

/** @param content results of a search, or the object with the reason for its failure */
function listed(content: unknown, leftOut: Set<string>): string | null {
  const lines: string[] = [];
  for (const result of listOf(content)) {
    const line = isObject(result) ? lineOf(result) : '';
    if (line === '') continue;
    if (lines.length === mostResults) {
      leftOut.add('web_search_tool_result');
      break;
    }
    lines.push(line);
  }
  return lines.length === 0 ? null : ['Web search results:', ...lines].join('\n');
}

function lineOf({ title, url }: JsonObject): string {
  const said = [textUnlessBlank(title), textUnlessBlank(url)].filter((text) => text !== null);
  return said.length === 0 ? '' : `- ${said.join(': ')}`;
}

function textUnlessBlank(value: unknown): string | null {
  const text = textOrNull(value);
  return text === null || text.trim() === '' ? null : text;
}
