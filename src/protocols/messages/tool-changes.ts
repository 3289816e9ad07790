import { isObject, type JsonObject, listOf, objectOf, textOrNull } from '../../wire/json.js';

/*
 * Changes of the model's tools in the middle of a conversation. Blocks of messages add tools, in full or by the name of
 * a known one, and remove tools. Clients use them to keep the cached part of `tools` (`addTools` and `removeTools` of
 * `@anthropic-ai/sdk`, beta `inline-tools-2026-09-15`). No other protocol has such changes, so its upstreams get the
 * tools that the conversation ends with.
 */

/** A tool as it stands in a body. */
export interface GivenTool {
  readonly tool: unknown;
  /** Path of the tool in the client's body. */
  readonly at: string;
}

/** A block that changes the tools. */
export interface ToolChange {
  readonly block: JsonObject;
  /** Path of the block in the client's body. */
  readonly at: string;
}

/**
 * Records the change of tools that a block of a message makes.
 * @param at path of the block in the client's body
 * @param changes receives the changes
 * @returns whether the block has no other content
 */
export function noteToolChange(block: JsonObject, at: string, changes: ToolChange[]): boolean {
  if (block.type === 'compaction') {
    // The changes in the turns that the block replaces.
    listOf(block.tool_changes).forEach((change, index) => {
      if (isObject(change)) noteToolChange(change, `${at}.tool_changes[${index}]`, changes);
    });
    return false;
  }
  if (block.type !== 'tool_addition' && block.type !== 'tool_removal') return false;
  changes.push({ block, at });
  return true;
}

/**
 * Returns the tools that a conversation ends with.
 * @param tools the tools that it begins with
 * @param changes in their order
 * @param leftOut receives the type of a block that names tools that are not in the body, such as those of MCP servers
 */
export function changedTools(
  tools: readonly GivenTool[],
  changes: readonly ToolChange[],
  leftOut: Set<string>,
): readonly GivenTool[] {
  if (changes.length === 0) return tools;
  const known = new Map(tools.map((given) => [nameOf(given), given]));
  const offered = new Map(known);
  for (const { block, at } of changes) {
    const named = objectOf(block.tool);
    const isAddition = block.type === 'tool_addition';
    if (isAddition && named.type === 'tool_definition') {
      const given = { tool: named.definition, at: `${at}.tool.definition` };
      known.set(nameOf(given), given);
      offered.set(nameOf(given), given);
      continue;
    }
    const name = named.type === 'tool_reference' ? textOrNull(named.name) : null;
    const given = name === null ? undefined : known.get(name);
    if (name === null || given === undefined) leftOut.add(isAddition ? 'tool_addition' : 'tool_removal');
    else if (isAddition) offered.set(name, given);
    else offered.delete(name);
  }
  return [...offered.values()];
}

/** Returns the identity of a tool: its name, or its path if it has none. */
function nameOf({ tool, at }: GivenTool): string {
  return (isObject(tool) && textOrNull(tool.name)) || at;
}
