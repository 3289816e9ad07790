import { isObject, type JsonObject, listOf } from '../../wire/json.js';
import type { ToolSource } from './namespaces.js';

/** Items of an input that bring tools with them: agents add some as they go, and a search for tools has found some. */
const bringTools: readonly unknown[] = ['additional_tools', 'tool_search_output'];

/**
 * Where a body declares tools, in the order in which they count.
 * @param body of `POST /v1/responses`, of any shape
 */
export function toolSources({ tools, input }: JsonObject): ToolSource[] {
  const sources: ToolSource[] = [{ tools, at: 'tools' }];
  listOf(input).forEach((item, index) => {
    if (isObject(item) && bringTools.includes(item.type))
      sources.push({ tools: item.tools, at: `input[${index}].tools` });
  });
  return sources;
}
