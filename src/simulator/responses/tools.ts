import type { Tool, ToolChoice } from '../answer/prompt.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import { invalid, textIn } from '../openai/values.js';

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;
const hosted =
  /^(?:web_search|file_search|code_interpreter|image_generation|computer|mcp|local_shell|shell|apply_patch|tool_search|namespace)/;

/**
 * Reads the functions and custom tools among `tools`; server tools are never used.
 * @throws RequestError
 */
export function readTools(tools: unknown): readonly Tool[] {
  const list: unknown = tools ?? [];
  if (!Array.isArray(list)) {
    throw invalid('tools', 'an array');
  }
  return list.flatMap((tool, index) => readTool(tool, `tools[${index}]`));
}

function readTool(tool: unknown, path: string): readonly Tool[] {
  if (!isObject(tool)) {
    throw invalid(path, 'an object');
  }
  const type = textIn(tool, 'type', path);
  if (type !== 'function' && type !== 'custom') {
    if (!hosted.test(type)) {
      throw new RequestError(400, `Invalid value: '${type}'.`, `${path}.type`, 'invalid_value');
    }
    return [];
  }
  const name = textIn(tool, 'name', path);
  if (!namePattern.test(name)) {
    throw new RequestError(
      400,
      `Invalid '${path}.name': string does not match pattern. Expected a string that matches the pattern '${namePattern.source}'.`,
      `${path}.name`,
      'invalid_value',
    );
  }
  const parameters = tool.parameters ?? null;
  if (parameters !== null && !isObject(parameters)) {
    throw invalid(`${path}.parameters`, 'an object');
  }
  return [{ name, parameters, custom: type === 'custom' }];
}

/**
 * Reads which tools may, or must, be called.
 * @returns the choice, with the permitted tools
 * @throws RequestError
 */
export function readToolChoice(
  choice: unknown,
  tools: readonly Tool[],
): { readonly choice: ToolChoice; readonly allowed: readonly Tool[] } {
  const usual: ToolChoice = { mode: 'auto' };
  if (choice === undefined || choice === null) {
    return { choice: usual, allowed: tools };
  }
  if (choice === 'none' || choice === 'auto' || choice === 'required') {
    return { choice: { mode: choice }, allowed: tools };
  }
  if (!isObject(choice)) {
    throw invalid('tool_choice', "'none', 'auto', 'required' or an object");
  }
  switch (choice.type) {
    case 'function':
    case 'custom':
      return { choice: { mode: 'named', name: nameIn(choice, tools) }, allowed: tools };
    case 'allowed_tools': {
      const list: readonly unknown[] = Array.isArray(choice.tools) ? choice.tools : [];
      const names = list
        .filter(isObject)
        .filter(({ type }) => type === 'function' || type === 'custom')
        .map((one) => nameIn(one, tools));
      return {
        choice: { mode: choice.mode === 'required' ? 'required' : 'auto' },
        allowed: tools.filter(({ name }) => names.includes(name)),
      };
    }
    default:
      if (typeof choice.type !== 'string' || !hosted.test(choice.type)) {
        throw invalid('tool_choice.type', "'function', 'custom', 'allowed_tools' or a tool of the server");
      }
      return { choice: usual, allowed: tools };
  }
}

function nameIn(choice: JsonObject, tools: readonly Tool[]): string {
  const name = textIn(choice, 'name', 'tool_choice');
  const custom = choice.type === 'custom';
  if (!tools.some((tool) => tool.name === name && tool.custom === custom)) {
    throw new RequestError(400, `Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice', null);
  }
  return name;
}
