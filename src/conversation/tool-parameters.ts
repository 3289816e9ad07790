import type { JsonObject } from '../wire/json.js';

/**
 * The schema of a function's arguments as vendors take it: clients leave out that it is of an object, or all of it, and
 * OpenAI refuses an object without `properties` ("object schema missing properties").
 * @param parameters null for a function without arguments
 * @returns the same schema where nothing is missing
 */
export function toolParameters(parameters: JsonObject | null): JsonObject {
  if (parameters === null) return { type: 'object', properties: {} };
  const { type = 'object', properties, $ref: reference } = parameters;
  if (type !== 'object' || (parameters.type !== undefined && properties !== undefined)) return parameters;
  const members = properties !== undefined || reference !== undefined ? {} : { properties: {} };
  return { type, ...members, ...parameters };
}
