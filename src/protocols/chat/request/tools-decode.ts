import type { ConversationRequest, Tool, ToolChoice } from '../../../conversation/request.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import { wrongValue } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';

type HostedTools = ConversationRequest['hostedTools'];

/**
 * Reads `tools`, the older `functions`, and `web_search_options`, which stands for a tool that the upstream runs.
 * @throws {GatewayError} of status 400 for a tool without a name
 */
export function decodeTools(body: JsonObject): { readonly tools: Tool[]; readonly hostedTools: HostedTools } {
  const tools: Tool[] = [];
  const hostedTools: HostedTools[number][] = [];
  listOf(body.tools).forEach((tool, index) => {
    const at = `tools[${index}]`;
    if (!isObject(tool)) throw wrongValue(at, 'an object');
    if (tool.type === 'function') tools.push(functionTool(tool.function, `${at}.function`));
    else if (tool.type === 'custom') tools.push(customTool(tool.custom, `${at}.custom`));
    else hostedTools.push({ type: String(tool.type), at });
  });
  listOf(body.functions).forEach((definition, index) => {
    tools.push(functionTool(definition, `functions[${index}]`));
  });
  if (isObject(body.web_search_options))
    hostedTools.push({ type: 'web_search_options', at: 'web_search_options' });
  return { tools, hostedTools };
}

/**
 * Reads `tool_choice` or, where it is not set, the older `function_call`.
 * @throws {GatewayError} of status 400 for a choice that is none of the documented forms
 */
export function decodeToolChoice(body: JsonObject): ToolChoice | null {
  const choice = body.tool_choice ?? null;
  if (choice === null) return functionCallChoice(body.function_call);
  if (choice === 'none' || choice === 'auto' || choice === 'required') return { mode: choice };
  if (!isObject(choice))
    throw wrongValue('tool_choice', "'none', 'auto', 'required' or an object that names a tool");
  if (choice.type === 'function' || choice.type === 'custom')
    return { mode: 'named', name: chosenName(choice, choice.type, 'tool_choice') };
  if (choice.type === 'allowed_tools') return allowedTools(choice.allowed_tools);
  throw untranslatable('tool_choice', `of type '${String(choice.type)}'`);
}

function functionCallChoice(choice: unknown): ToolChoice | null {
  if (choice === undefined || choice === null) return null;
  if (choice === 'none' || choice === 'auto') return { mode: choice };
  if (isObject(choice)) return { mode: 'named', name: requireName(choice, 'function_call') };
  throw wrongValue('function_call', "'none', 'auto' or an object with the function's name");
}

function allowedTools(allowed: unknown): ToolChoice {
  const at = 'tool_choice.allowed_tools';
  if (!isObject(allowed)) throw wrongValue(at, 'an object');
  if (allowed.mode !== 'auto' && allowed.mode !== 'required')
    throw wrongValue(`${at}.mode`, "'auto' or 'required'");
  if (!Array.isArray(allowed.tools)) throw wrongValue(`${at}.tools`, 'an array');
  const names = allowed.tools.map((tool: unknown, index) => {
    const toolAt = `${at}.tools[${index}]`;
    if (!isObject(tool)) throw wrongValue(toolAt, 'an object');
    if (tool.type !== 'function' && tool.type !== 'custom')
      throw untranslatable(toolAt, `of type '${String(tool.type)}'`);
    return chosenName(tool, tool.type, toolAt);
  });
  return { mode: 'allowed', names, required: allowed.mode === 'required' };
}

/** Some clients put the name where the responses protocol has it: beside the type. */
function chosenName(choice: JsonObject, type: 'function' | 'custom', at: string): string {
  const inner = choice[type];
  return isObject(inner) ? requireName(inner, `${at}.${type}`) : requireName(choice, at);
}

function functionTool(definition: unknown, at: string): Tool {
  if (!isObject(definition)) throw wrongValue(at, 'an object');
  return {
    name: requireName(definition, at),
    description: textOrNull(definition.description),
    parameters: isObject(definition.parameters) ? definition.parameters : null,
    strict: typeof definition.strict === 'boolean' ? definition.strict : null,
  };
}

function customTool(definition: unknown, at: string): Tool {
  if (!isObject(definition)) throw wrongValue(at, 'an object');
  return {
    name: requireName(definition, at),
    description: textOrNull(definition.description),
    parameters: null,
    strict: null,
    custom: { format: inputFormat(definition.format) },
  };
}

/** The format of a custom tool's input, its grammar beside the type: `{type, syntax, definition}`. */
function inputFormat(format: unknown): JsonObject | null {
  if (!isObject(format) || format.type === 'text') return null;
  return isObject(format.grammar) ? { type: format.type, ...format.grammar } : format;
}

function requireName(definition: JsonObject, at: string): string {
  const { name } = definition;
  if (typeof name !== 'string' || name === '') throw wrongValue(`${at}.name`, 'a name that is not empty');
  return name;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
