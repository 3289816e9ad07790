import { isObject, type JsonObject } from './json.js';

const counts = ['minItems', 'maxItems', 'minProperties', 'maxProperties', 'minLength', 'maxLength'];

/**
 * The protocol's own schemas as JSON Schema: there types have capital letters, what may be null is `nullable`, and
 * counts may be texts.
 */
export function jsonSchema(schema: unknown): unknown {
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
