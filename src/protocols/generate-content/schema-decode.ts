import { isList, isObject, type JsonObject } from '../../wire/json.js';
import { snakeCase } from './spelling.js';

/** Members of a `Schema` that JSON Schema does not know. */
const ownMembers: ReadonlySet<string> = new Set(['nullable', 'example', 'propertyOrdering']);
/** Limits that are 64-bit integers, which protocol buffers write as strings. */
const limits: ReadonlySet<string> = new Set([
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
]);
const camelNames: ReadonlyMap<string, string> = new Map(
  ['anyOf', 'propertyOrdering', 'additionalProperties', ...limits].map((name) => [snakeCase(name), name]),
);

/**
 * Turns the vendor's `Schema` (a subset of OpenAPI 3.0: upper-case types, `nullable`) into JSON Schema. Members that it
 * does not know stay as they are.
 */
export function decodeSchema(schema: JsonObject): JsonObject {
  const members: [string, unknown][] = [];
  for (const [key, value] of Object.entries(schema)) {
    const name = camelNames.get(key) ?? key;
    if (!ownMembers.has(name) && value !== null) addMember(members, name, value);
  }
  if (schema.nullable === true) allowNull(members);
  return Object.fromEntries(members);
}

function addMember(members: [string, unknown][], name: string, value: unknown): void {
  if (name === 'type' && typeof value === 'string') {
    if (value !== 'TYPE_UNSPECIFIED') members.push([name, value.toLowerCase()]);
  } else if (name === 'format' && value === 'enum') {
    // Says only that there is an `enum` beside it; JSON Schema has no such format.
    return;
  } else if (name === 'properties' && isObject(value)) {
    members.push([name, decodeProperties(value)]);
  } else if ((name === 'items' || name === 'additionalProperties') && isObject(value)) {
    members.push([name, decodeSchema(value)]);
  } else if (name === 'anyOf' && Array.isArray(value)) {
    members.push([name, value.map((branch: unknown) => (isObject(branch) ? decodeSchema(branch) : branch))]);
  } else if (limits.has(name) && typeof value === 'string' && Number.isSafeInteger(Number(value))) {
    members.push([name, Number(value)]);
  } else {
    members.push([name, value]);
  }
}

function decodeProperties(properties: JsonObject): JsonObject {
  // Object.fromEntries takes every name, `__proto__` as well.
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      isObject(schema) ? decodeSchema(schema) : schema,
    ]),
  );
}

function allowNull(members: [string, unknown][]): void {
  for (const member of members) {
    const [name, value] = member;
    if (name === 'type' && typeof value === 'string') member[1] = [value, 'null'];
    else if (name === 'enum' && isList(value)) member[1] = [...value, null];
    else if (name === 'anyOf' && isList(value)) member[1] = [...value, { type: 'null' }];
  }
}
