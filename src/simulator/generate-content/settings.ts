import type { OutputFormat, Tool, ToolChoice } from '../answer/prompt.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import { type ImageWish, imageModels, modalitiesOf, readImageWish } from './image.js';

const counts = ['minItems', 'maxItems', 'minProperties', 'maxProperties', 'minLength', 'maxLength'];

/**
 * Converts the protocol's own schemas to JSON Schema: their types are in capitals, nullable ones have `nullable`, and
 * counts may be strings.
 */
function jsonSchema(schema: unknown): unknown {
  if (!isObject(schema)) {
    return schema;
  }
  const { nullable, ...members } = schema;
  const plain = Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name, member(name, value)]),
  );
  return nullable === true ? { anyOf: [plain, { type: 'null' }] } : plain;
}

function member(name: string, value: unknown): unknown {
  if (name === 'type') {
    return String(value).toLowerCase();
  }
  if (counts.includes(name)) {
    return Number(value);
  }
  if (name === 'items') {
    return jsonSchema(value);
  }
  if (name === 'anyOf' && Array.isArray(value)) {
    return value.map(jsonSchema);
  }
  if (name === 'properties' && isObject(value)) {
    const properties: JsonObject = value;
    return Object.fromEntries(Object.entries(properties).map(([key, inner]) => [key, jsonSchema(inner)]));
  }
  return value;
}

const levels = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'];
const maxStops = 5;

/** The members of `generationConfig` that the simulator reads. */
export interface Generation {
  readonly candidates: number;
  readonly maxTokens: number;
  readonly stop: readonly string[];
  readonly format: OutputFormat;
  /** Whether the answer is one of the schema's values, without quotes. */
  readonly asEnum: boolean;
  /** Thinking setting, or null without thinking. */
  readonly thinking: string | null;
  readonly showsThoughts: boolean;
  /** Alternatives per token, or null for no log probabilities. */
  readonly logprobs: number | null;
  /** The image to generate, or null for a model that makes none. */
  readonly image: ImageWish | null;
}

/**
 * Reads and checks `generationConfig`.
 * @throws RequestError
 */
export function readGeneration(value: unknown, model: string): Generation {
  const config: JsonObject = isObject(value) ? value : {};
  range(config, 'temperature', 0, 2);
  range(config, 'topP', 0, 1);
  const makesImages = imageModels.includes(model);
  const thinking: JsonObject = isObject(config.thinkingConfig) ? config.thinkingConfig : {};
  return {
    candidates: integer(config, 'candidateCount', 1, 8) ?? 1,
    maxTokens: integer(config, 'maxOutputTokens', 1, Infinity) ?? Infinity,
    stop: readStop(config.stopSequences),
    format: readFormat(config, makesImages),
    asEnum: config.responseMimeType === 'text/x.enum',
    thinking: config.thinkingConfig === undefined ? null : readThinking(thinking),
    showsThoughts: thinking.includeThoughts === true,
    logprobs: readLogprobs(config),
    image: makesImages ? readImageWish(config, model) : null,
  };
}

function invalid(name: string, what: string): RequestError {
  return new RequestError(400, `* GenerateContentRequest.generation_config.${name}: ${what}`);
}

function range(config: JsonObject, name: string, least: number, most: number): void {
  const value = config[name];
  if (value !== undefined && (typeof value !== 'number' || value < least || value > most)) {
    throw invalid(name, `must be in the range [${least}, ${most}].`);
  }
}

function integer(config: JsonObject, name: string, least: number, most: number): number | null {
  const value = config[name];
  if (value === undefined) {
    return null;
  }
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    throw invalid(
      name,
      most === Infinity ? `must be at least ${least}.` : `must be from ${least} to ${most}.`,
    );
  }
  return value;
}

function readStop(stop: unknown): readonly string[] {
  const list: unknown = stop ?? [];
  if (!Array.isArray(list) || !list.every((one): one is string => typeof one === 'string' && one !== '')) {
    throw invalid('stop_sequences', 'must be non-empty texts.');
  }
  if (list.length > maxStops) {
    throw invalid('stop_sequences', `at most ${maxStops} stop sequences are allowed.`);
  }
  return list;
}

function readFormat(config: JsonObject, makesImages: boolean): OutputFormat {
  const { responseMimeType: type, responseSchema, responseJsonSchema } = config;
  if (!makesImages && modalitiesOf(config).some((modality) => modality !== 'TEXT')) {
    throw invalid('response_modalities', 'this model gives nothing but TEXT.');
  }
  if (type !== undefined && !['text/plain', 'application/json', 'text/x.enum'].includes(String(type))) {
    throw invalid(
      'response_mime_type',
      'allowed mimetypes are `text/plain`, `application/json` and `text/x.enum`.',
    );
  }
  if (responseSchema !== undefined && responseJsonSchema !== undefined) {
    throw invalid('response_schema', 'cannot be set together with response_json_schema.');
  }
  const schema = responseJsonSchema ?? jsonSchema(responseSchema);
  const structured = type === 'application/json' || type === 'text/x.enum';
  if (schema === undefined) {
    return { kind: structured ? 'object' : 'text' };
  }
  if (!structured) {
    throw invalid(
      'response_mime_type',
      'must be `application/json` or `text/x.enum` with a response schema.',
    );
  }
  return { kind: 'schema', schema };
}

function readThinking({ thinkingBudget: budget, thinkingLevel: level }: JsonObject): string | null {
  if (budget !== undefined && level !== undefined) {
    throw new RequestError(400, 'You can only set only one of thinking budget and thinking level.');
  }
  if (budget !== undefined) {
    if (typeof budget !== 'number' || !Number.isInteger(budget) || budget < -1) {
      throw invalid('thinking_config.thinking_budget', 'must be an integer from -1 on.');
    }
    return budget === 0 ? null : budget === -1 ? 'dynamic' : `budget ${budget}`;
  }
  const word = level === undefined ? 'dynamic' : String(level).toUpperCase();
  if (level !== undefined && !levels.includes(word)) {
    throw invalid('thinking_config.thinking_level', `must be one of ${levels.join(', ')}.`);
  }
  return word;
}

function readLogprobs(config: JsonObject): number | null {
  const alternatives = integer(config, 'logprobs', 0, 20);
  if (config.responseLogprobs === true) {
    return alternatives ?? 0;
  }
  if (alternatives !== null) {
    throw invalid('logprobs', 'must not be set unless response_logprobs is true.');
  }
  return null;
}

const namePattern = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;

/**
 * Reads the functions among `tools`; server tools are never used.
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
 * @returns the choice, with the permitted functions
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
