import type { Tool, ToolChoice } from '../../conversation/request.js';
import { isObject, type JsonObject, listOf, textOrNull } from '../../wire/json.js';
import { invalidValue, missingValue } from '../../wire/reading.js';
import { untranslatable } from '../unsupported.js';
import { functionOf } from './client-tools.js';
import { chosenType, type ListedTool, type ToolList, upstreamName } from './namespaces.js';
import { isSearchTool } from './search-tool.js';

/** Deeper schemas are not looked through. */
const deepest = 32;

/** Decodes a tool of a client's list. */
export function decodeTool({ tool, type, name }: ListedTool): Tool {
  if (type !== null) return functionOf(tool, type, name);
  const description = textOrNull(tool.description);
  if (tool.type === 'custom') {
    const { format } = tool;
    const custom = { format: isObject(format) && format.type !== 'text' ? format : null };
    return { name, description, parameters: null, strict: null, custom };
  }
  const parameters = isObject(tool.parameters) ? tool.parameters : null;
  return { name, description, parameters, strict: strictOf(tool.strict, parameters) };
}

function strictOf(value: unknown, parameters: JsonObject | null): boolean | null {
  if (typeof value === 'boolean') return value;
  return value === undefined && isStrictByDefault(parameters) ? true : null;
}

/**
 * Decodes `tool_choice`. One of a tool that only an upstream of the protocol runs is left out with the tool.
 * @param list the client's tools
 * @throws {GatewayError} for an unknown form
 */
export function decodeToolChoice(choice: unknown, list: ToolList, leftOut: Set<string>): ToolChoice | null {
  if (choice === undefined || choice === null) return null;
  if (choice === 'none' || choice === 'auto' || choice === 'required') return { mode: choice };
  if (typeof choice === 'string')
    throw invalidValue('tool_choice', 'expected "none", "auto", "required" or an object');
  if (!isObject(choice)) throw untranslatable('tool_choice');
  if (choice.type === 'allowed_tools') return decodeAllowed(choice, list, leftOut);
  const name = chosenName(choice, 'tool_choice', list);
  if (name !== null) return { mode: 'named', name };
  if (list.search !== null && isSearchTool(choice.type)) return null;
  leftOut.add('tool_choice');
  return null;
}

function decodeAllowed(choice: JsonObject, list: ToolList, leftOut: Set<string>): ToolChoice {
  const names: string[] = [];
  const tools = listOf(choice.tools);
  tools.forEach((tool, index) => {
    const at = `tool_choice.tools[${index}]`;
    if (!isObject(tool)) throw untranslatable(at);
    const name = chosenName(tool, at, list);
    if (name !== null) names.push(name);
    else leftOut.add('tool_choice');
  });
  // Where the tools of the upstream are left out, nothing that may be called remains.
  if (names.length === 0 && tools.length > 0) return { mode: 'none' };
  return { mode: 'allowed', names, required: choice.mode === 'required' };
}

/** The name at the upstream of a tool that is chosen; null where only an upstream of the protocol runs it. */
function chosenName(choice: JsonObject, at: string, list: ToolList): string | null {
  if (choice.type !== 'function' && choice.type !== 'custom') return chosenType(list, choice);
  if (typeof choice.name === 'string') return upstreamName(list, choice.namespace, choice.name);
  throw missingValue(`${at}.name`, 'a string');
}

/**
 * Whether a tool without a `strict` member is a strict one. The protocol makes it one where its schema allows that:
 * every object closed, and all of its properties required.
 * @param parameters JSON Schema of the arguments
 */
function isStrictByDefault(parameters: JsonObject | null): boolean {
  return parameters !== null && parameters.type === 'object' && isClosed(parameters, deepest);
}

function isClosed(schema: unknown, levels: number): boolean {
  if (levels === 0) return false;
  if (Array.isArray(schema)) return schema.every((each) => isClosed(each, levels - 1));
  if (!isObject(schema)) return false;
  if (schema.oneOf !== undefined || schema.allOf !== undefined) return false;
  const { properties, required } = schema;
  if (schema.type === 'object' || properties !== undefined) {
    if (schema.additionalProperties !== false || !isObject(properties)) return false;
    for (const name of Object.keys(properties)) {
      if (!Array.isArray(required) || !required.includes(name)) return false;
      if (!isClosed(properties[name], levels - 1)) return false;
    }
  }
  if (schema.items !== undefined && !isClosed(schema.items, levels - 1)) return false;
  if (schema.anyOf !== undefined && !isClosed(schema.anyOf, levels - 1)) return false;
  const definitions = schema.$defs ?? schema.definitions;
  return definitions === undefined || (isObject(definitions) && areClosed(definitions, levels));
}

function areClosed(schemas: JsonObject, levels: number): boolean {
  return Object.keys(schemas).every((name) => isClosed(schemas[name], levels - 1));
}
