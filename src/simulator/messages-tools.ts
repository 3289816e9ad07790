import { isObject, type JsonObject } from './json.js';
import { refuse, stringIn } from './messages-turns.js';
import type { Tool, ToolChoice } from './prompt.js';
import { RequestError } from './protocol-route.js';

const namePattern = /^[a-zA-Z0-9_-]{1,128}$/;

/** The tools of a request. */
export interface OfferedTools {
  /** Those that the caller runs and described with a schema. */
  readonly callable: readonly Tool[];
  /** Of all, with those of the server. */
  readonly names: readonly string[];
}

/**
 * Reads `tools`; those of the server, which have a dated type, are never called.
 * @throws RequestError
 */
export function readTools(tools: unknown): OfferedTools {
  const list: unknown = tools ?? [];
  if (!Array.isArray(list)) {
    throw refuse('tools', 'Input should be a valid list');
  }
  const callable: Tool[] = [];
  const names: string[] = [];
  for (const [index, tool] of list.entries()) {
    const path = `tools.${index}`;
    if (!isObject(tool)) {
      throw refuse(path, 'Input should be an object');
    }
    const custom = (tool.type ?? 'custom') === 'custom';
    if (!custom && !/_\d{8}$/.test(String(tool.type)) && tool.type !== 'mcp_toolset') {
      throw refuse(
        path,
        `Input tag '${String(tool.type)}' found using 'type' does not match any of the expected tags`,
      );
    }
    if (custom) {
      callable.push(readTool(tool, `${path}.custom`));
    }
    if (typeof tool.name === 'string') {
      names.push(tool.name);
    }
  }
  if (new Set(names).size < names.length) {
    throw refuse('tools', 'Tool names must be unique.');
  }
  return { callable, names };
}

function readTool(tool: JsonObject, path: string): Tool {
  const name = stringIn(tool, 'name', path);
  if (!namePattern.test(name)) {
    throw refuse(`${path}.name`, `String should match pattern '${namePattern.source}'`);
  }
  const schema = tool.input_schema;
  if (!isObject(schema)) {
    throw refuse(
      `${path}.input_schema`,
      schema === undefined ? 'Field required' : 'Input should be an object',
    );
  }
  if (schema.type !== 'object') {
    throw refuse(
      `${path}.input_schema.type`,
      schema.type === undefined ? 'Field required' : "Input should be 'object'",
    );
  }
  return { name, parameters: schema, custom: false };
}

/**
 * Reads `tool_choice`.
 * @throws RequestError
 */
export function readToolChoice(
  choice: unknown,
  tools: OfferedTools,
): { readonly toolChoice: ToolChoice; readonly parallel: boolean } {
  if (choice === undefined || choice === null) {
    return { toolChoice: { mode: 'auto' }, parallel: true };
  }
  if (!isObject(choice)) {
    throw refuse('tool_choice', 'Input should be an object');
  }
  if (tools.names.length === 0) {
    throw new RequestError(400, 'tool_choice may only be specified while providing tools.');
  }
  return { toolChoice: modeOf(choice, tools), parallel: choice.disable_parallel_tool_use !== true };
}

function modeOf(choice: JsonObject, tools: OfferedTools): ToolChoice {
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { mode: choice.type };
    case 'any':
      return { mode: 'required' };
    case 'tool': {
      const name = stringIn(choice, 'name', 'tool_choice.tool');
      if (!tools.names.includes(name)) {
        throw new RequestError(400, `Tool '${name}' not found in provided tools`);
      }
      return { mode: 'named', name };
    }
    default:
      throw refuse(
        'tool_choice',
        "Input tag found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'",
      );
  }
}
