import type { Tool, ToolChoice } from '../../../conversation/request.js';
import type { JsonObject } from '../../../wire/json.js';

const noParameters: JsonObject = { type: 'object', properties: {} };

/** Writes one entry of `tools`. */
export function encodeTool(tool: Tool): JsonObject {
  const { name, custom, strict } = tool;
  const description = tool.description ?? undefined;
  if (custom !== undefined)
    return { type: 'custom', custom: { name, description, format: inputFormat(custom.format) } };
  const parameters = tool.parameters ?? noParameters;
  return { type: 'function', function: { name, description, parameters, strict: strict ?? undefined } };
}

/**
 * Writes `tool_choice`. A name that no tool has may be that of one that was dropped: it is left out, and so is a choice
 * that names no other.
 * @param tools tell which of the names are of custom tools, whose choice is worded differently
 */
export function encodeToolChoice(
  choice: ToolChoice | null,
  tools: readonly Tool[],
): string | JsonObject | undefined {
  switch (choice?.mode) {
    case 'named':
      return named(choice.name, tools);
    case 'allowed': {
      const allowed = choice.names.map((name) => named(name, tools)).filter((each) => each !== undefined);
      const mode = choice.required ? 'required' : 'auto';
      return allowed.length === 0
        ? undefined
        : { type: 'allowed_tools', allowed_tools: { mode, tools: allowed } };
    }
    default:
      return choice?.mode;
  }
}

function named(name: string, tools: readonly Tool[]): JsonObject | undefined {
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) return undefined;
  return tool.custom === undefined
    ? { type: 'function', function: { name } }
    : { type: 'custom', custom: { name } };
}

/** In this protocol a grammar stands in a member of its own; see `inputFormat` in `tools-decode.ts`. */
function inputFormat(format: JsonObject | null): JsonObject | undefined {
  if (format === null) return undefined;
  if (format.type !== 'grammar' || format.grammar !== undefined) return format;
  return { type: 'grammar', grammar: { syntax: format.syntax, definition: format.definition } };
}
