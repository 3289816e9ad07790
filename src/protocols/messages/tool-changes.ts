import { isObject, type JsonObject, listOf, objectOf, textOrNull } from '../../wire/json.js';

/*
 * Which tools the model has may change in the middle of a conversation: blocks of its messages bring further tools, whole or
 * by the name of one that is known, and take tools away. Clients do so to keep what is cached of `tools`
 * (`addTools` and `removeTools` of `@anthropic-ai/sdk`, beta `inline-tools-2026-09-15`). No other protocol has that, so its
 * upstreams get the tools that the conversation ends with.
 */

/** A tool as a body has it. */
export interface GivenTool {
  readonly tool: unknown;
  /** Path of it in the client's body. */
  readonly at: string;
}

/** A block that changes the tools. */
export interface ToolChange {
  readonly block: JsonObject;
  /** Path of it in the client's body. */
  readonly at: string;
}

/**
 * Takes note of what a block of a message says of the tools.
 * @param at path of the block in the client's body
 * @param changes gets the changes
 * @returns whether the block says nothing else
 */
export function noteToolChange(block: JsonObject, at: string, changes: ToolChange[]): boolean {
  if (block.type === 'compaction') {
    // Those of the turns that it stands for.
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
 * The tools that a conversation ends with.
 * @param tools those that it begins with
 * @param changes in their order
 * @param leftOut gets the type of a block that names tools which are not in the body, as those of MCP servers
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

/** What tells a tool from the others: its name, or its path where it has none. */
function nameOf({ tool, at }: GivenTool): string {
  return (isObject(tool) && textOrNull(tool.name)) || at;
}
