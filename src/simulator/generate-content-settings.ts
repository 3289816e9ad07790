import { type ImageWish, imageModels, modalitiesOf, readImageWish } from './generate-content-image.js';
import { jsonSchema } from './generate-content-schema.js';
import { isObject, type JsonObject } from './json.js';
import type { OutputFormat } from './prompt.js';
import { RequestError } from './protocol-route.js';

const levels = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'];
const mostStops = 5;

/** `generationConfig` as far as the simulator reads it. */
export interface Generation {
  readonly candidates: number;
  readonly maxTokens: number;
  readonly stop: readonly string[];
  readonly format: OutputFormat;
  /** A text that is one of the schema's values, without quotes. */
  readonly asEnum: boolean;
  /** How the model shall think, or null where it shall not. */
  readonly thinking: string | null;
  readonly showsThoughts: boolean;
  /** Alternatives a token, or null for no log probabilities. */
  readonly logprobs: number | null;
  /** The image that is to be made, or null from a model that makes none. */
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
  if (list.length > mostStops) {
    throw invalid('stop_sequences', `at most ${mostStops} stop sequences are allowed.`);
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
