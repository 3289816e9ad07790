import type { JsonObject } from '../wire/json.js';

/**
 * Completes the schema of a function's arguments as vendors require it. Clients omit its type, or the schema itself,
 * and OpenAI refuses an object without `properties` ("object schema missing properties").
 * @param parameters null for a function without arguments
 * @returns the schema itself if nothing is missing
 */
export function toolParameters(parameters: JsonObject | null): JsonObject {
  if (parameters === null) return { type: 'object', properties: {} };
  const { type = 'object', properties, $ref: reference } = parameters;
  if (type !== 'object' || (parameters.type !== undefined && properties !== undefined)) return parameters;
  const members = properties !== undefined || reference !== undefined ? {} : { properties: {} };
  return { type, ...members, ...parameters };
}
