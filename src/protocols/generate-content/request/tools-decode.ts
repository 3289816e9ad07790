import type { ConversationRequest, Tool, ToolChoice } from '../../../conversation/request.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import { decodeSchema } from '../schema-decode.js';
import { keyOf, memberOf, snakeCase } from '../spelling.js';
import { wrongValue } from './content-decode.js';

type HostedTools = ConversationRequest['hostedTools'];

const declarations = 'functionDeclarations';

/**
 * Reads `tools`: the functions in them, and beside them what the vendor runs itself.
 * @throws {GatewayError} of status 400 for a function without a name
 */
export function decodeTools(body: JsonObject): { readonly tools: Tool[]; readonly hostedTools: HostedTools } {
  const tools: Tool[] = [];
  const hostedTools: HostedTools[number][] = [];
  listOf(body.tools).forEach((tool, index) => {
    const at = `tools[${index}]`;
    if (!isObject(tool)) throw wrongValue(at, 'an object');
    const functionsAt = `${at}.${keyOf(tool, declarations)}`;
    listOf(memberOf(tool, declarations)).forEach((declaration, number) => {
      tools.push(decodeFunction(declaration, `${functionsAt}[${number}]`));
    });
    for (const [key, value] of Object.entries(tool)) {
      if (value === null || key === declarations || key === snakeCase(declarations)) continue;
      hostedTools.push({ type: key, at: `${at}.${key}` });
    }
  });
  return { tools, hostedTools };
}

/**
 * Reads `toolConfig`.
 * @throws {GatewayError} of status 400 for a mode that is none of the documented ones
 */
export function decodeToolChoice(body: JsonObject): ToolChoice | null {
  const config = memberOf(body, 'toolConfig');
  const calling = isObject(config) ? memberOf(config, 'functionCallingConfig') : null;
  if (!isObject(calling) || !isObject(config)) return null;
  const mode = textOrNull(calling.mode)?.toUpperCase() ?? 'MODE_UNSPECIFIED';
  if (mode === 'NONE') return { mode: 'none' };
  const required = mode === 'ANY';
  if (!required && mode !== 'AUTO' && mode !== 'VALIDATED' && mode !== 'MODE_UNSPECIFIED') {
    const at = `${keyOf(body, 'toolConfig')}.${keyOf(config, 'functionCallingConfig')}.mode`;
    throw wrongValue(at, "'AUTO', 'ANY', 'NONE' or 'VALIDATED'");
  }
  const names = listOf(memberOf(calling, 'allowedFunctionNames')).filter((name) => typeof name === 'string');
  const [name] = names;
  if (name === undefined)
    return mode === 'MODE_UNSPECIFIED' ? null : { mode: required ? 'required' : 'auto' };
  return required && names.length === 1 ? { mode: 'named', name } : { mode: 'allowed', names, required };
}

function decodeFunction(declaration: unknown, at: string): Tool {
  if (!isObject(declaration)) throw wrongValue(at, 'an object');
  const { name } = declaration;
  if (typeof name !== 'string' || name === '') throw wrongValue(`${at}.name`, 'a name that is not empty');
  return {
    name,
    description: textOrNull(declaration.description),
    parameters: decodeParameters(declaration),
    strict: null,
  };
}

function decodeParameters(declaration: JsonObject): JsonObject | null {
  const schema = memberOf(declaration, 'parametersJsonSchema');
  if (isObject(schema)) return schema;
  return isObject(declaration.parameters) ? decodeSchema(declaration.parameters) : null;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
