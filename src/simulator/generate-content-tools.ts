import { jsonSchema } from './generate-content-schema.js';
import { isObject, type JsonObject } from './json.js';
import type { Tool, ToolChoice } from './prompt.js';
import { RequestError } from './protocol-route.js';

const namePattern = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;

/**
 * Reads the functions among `tools`; the server's own tools are never used.
 * @throws RequestError
 */
export function readTools(tools: unknown): readonly Tool[] {
  const list: readonly unknown[] = Array.isArray(tools) ? tools : [];
  const read = list.flatMap((tool, place) => {
    const declared: unknown = isObject(tool) ? tool.functionDeclarations : null;
    return Array.isArray(declared)
      ? declared.map((one, index) =>
          readFunction(isObject(one) ? one : {}, `tools[${place}].function_declarations[${index}]`),
        )
      : [];
  });
  const twice = read.find(({ name }, index) => read.findIndex((one) => one.name === name) !== index);
  if (twice !== undefined) {
    throw new RequestError(400, `Duplicate function declaration found: ${twice.name}`);
  }
  return read;
}

function readFunction(declared: JsonObject, path: string): Tool {
  const { name, parameters, parametersJsonSchema } = declared;
  if (typeof name !== 'string' || !namePattern.test(name)) {
    throw new RequestError(
      400,
      `* GenerateContentRequest.${path}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.`,
    );
  }
  if (parameters !== undefined && parametersJsonSchema !== undefined) {
    throw new RequestError(
      400,
      `* GenerateContentRequest.${path}: parameters and parameters_json_schema cannot both be set.`,
    );
  }
  return { name, parameters: parametersJsonSchema ?? jsonSchema(parameters) ?? null, custom: false };
}

/**
 * Reads which functions may, or must, be called.
 * @returns with the functions that are allowed
 * @throws RequestError
 */
export function readToolChoice(
  toolConfig: unknown,
  tools: readonly Tool[],
): { readonly choice: ToolChoice; readonly allowed: readonly Tool[] } {
  const config = isObject(toolConfig) ? toolConfig.functionCallingConfig : null;
  const { mode, allowedFunctionNames }: JsonObject = isObject(config) ? config : {};
  const named: readonly unknown[] = Array.isArray(allowedFunctionNames) ? allowedFunctionNames : [];
  if (named.length > 0 && mode !== 'ANY' && mode !== 'VALIDATED') {
    throw new RequestError(
      400,
      'Allowed function names should be set only when function calling mode is ANY or VALIDATED.',
    );
  }
  const unknown = named.find((name) => !tools.some((tool) => tool.name === name));
  if (unknown !== undefined) {
    throw new RequestError(
      400,
      `Allowed function name '${String(unknown)}' is not among the declared functions.`,
    );
  }
  const allowed = named.length === 0 ? tools : tools.filter(({ name }) => named.includes(name));
  switch (mode ?? 'AUTO') {
    case 'NONE':
      return { choice: { mode: 'none' }, allowed };
    case 'ANY':
      if (tools.length === 0) {
        throw new RequestError(400, 'Function calling config is set without function_declarations.');
      }
      return { choice: { mode: 'required' }, allowed };
    case 'AUTO':
    case 'VALIDATED':
    case 'MODE_UNSPECIFIED':
      return { choice: { mode: 'auto' }, allowed };
    default:
      throw new RequestError(
        400,
        `Invalid value at 'tool_config.function_calling_config.mode', ${JSON.stringify(mode)}`,
      );
  }
}
