import { isObject, type JsonObject } from '../../conversation/json.js';

/** Deeper schemas are not looked through. */
const deepest = 32;

/**
 * Whether a tool without a `strict` member is a strict one. The protocol makes it one where its schema allows that:
 * every object closed, and all of its properties required.
 * @param parameters JSON Schema of the arguments
 */
export function isStrictByDefault(parameters: JsonObject | null): boolean {
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
