import { isObject, type JsonObject, member } from './json.js';
import { propertySchemas, resolveReference, type SchemaWork } from './schema-check.js';

const mostAlternatives = 24;
const deepest = 30;
const larger = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties', 'multipleOf'];
const smaller = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const subSchemas = ['items', 'additionalProperties', 'contains', 'additionalItems'];

/**
 * Writes a schema as alternatives without `$ref`, `allOf`, `anyOf` and `oneOf` at their top: each value that fits the
 * schema fits one of them. The reverse need not hold, so a value made from one is to be checked against the schema.
 */
export function alternatives(schema: unknown, work: SchemaWork, depth = 0): JsonObject[] {
  work.left -= 1;
  if (schema === false || work.left < 0 || depth > deepest) {
    return [];
  }
  if (!isObject(schema)) {
    return [{}];
  }
  const { $ref, allOf, anyOf, oneOf, ...own } = schema;
  let found: JsonObject[] = [own];
  const narrow = (by: readonly JsonObject[]): void => {
    found = found.flatMap((left) => by.map((right) => merge(left, right))).slice(0, mostAlternatives);
  };
  if ($ref !== undefined) {
    narrow(alternatives(resolveReference(work.root, $ref), work, depth + 1));
  }
  for (const part of Array.isArray(allOf) ? allOf : []) {
    narrow(alternatives(part, work, depth + 1));
  }
  for (const choice of [anyOf, oneOf]) {
    if (Array.isArray(choice)) {
      narrow(choice.flatMap((part) => alternatives(part, work, depth + 1)));
    }
  }
  return found;
}

/** A schema for what fits both. */
function merge(left: JsonObject, right: JsonObject): JsonObject {
  if (Object.keys(left).length === 0) {
    return right;
  }
  const merged: Record<string, unknown> = { ...left, ...right };
  for (const [names, pick] of [[larger, Math.max] as const, [smaller, Math.min] as const]) {
    for (const name of names) {
      const [a, b] = [left[name], right[name]];
      if (typeof a === 'number' && typeof b === 'number') {
        merged[name] = pick(a, b);
      }
    }
  }
  for (const name of subSchemas) {
    if (left[name] !== undefined && right[name] !== undefined) {
      merged[name] = both(left[name], right[name]);
    }
  }
  if (left.type !== undefined && right.type !== undefined) {
    merged.type = commonTypes(typesOf(left.type), typesOf(right.type));
  }
  if (Array.isArray(left.enum) && Array.isArray(right.enum)) {
    const allowed = new Set(right.enum.map((one) => JSON.stringify(one)));
    merged.enum = left.enum.filter((one) => allowed.has(JSON.stringify(one)));
  }
  if (Array.isArray(left.required) && Array.isArray(right.required)) {
    merged.required = [...new Set([...left.required, ...right.required])];
  }
  if (isObject(left.properties) || isObject(right.properties)) {
    merged.properties = mergeProperties(left, right);
  }
  return merged;
}

/** A property that only one side names has to fit what the other side says of the properties it does not name. */
function mergeProperties(left: JsonObject, right: JsonObject): JsonObject {
  const names = new Set(
    [left, right].flatMap((side) => (isObject(side.properties) ? Object.keys(side.properties) : [])),
  );
  return Object.fromEntries(
    [...names].map((name) => [name, both(...propertySchemas(left, name), ...propertySchemas(right, name))]),
  );
}

function both(...schemas: readonly unknown[]): unknown {
  const telling = schemas.filter((schema) => schema !== true);
  return telling.length === 1 ? telling[0] : telling.length === 0 ? true : { allOf: telling };
}

/** The types that a schema's `type` names. */
export function typesOf(type: unknown): readonly string[] {
  return [type].flat().filter((one): one is string => typeof one === 'string');
}

function commonTypes(left: readonly string[], right: readonly string[]): string[] {
  const narrowed = (type: string, others: readonly string[]): string[] =>
    others.includes(type) || (type === 'integer' && others.includes('number')) ? [type] : [];
  return [
    ...new Set([
      ...left.flatMap((type) => narrowed(type, right)),
      ...right.flatMap((type) => narrowed(type, left)),
    ]),
  ];
}

/** What an alternative's type is where it does not say: judged by the keywords that it has. */
export function impliedTypes(schema: JsonObject): readonly string[] {
  if (schema.type !== undefined) {
    return typesOf(schema.type);
  }
  const has = (...names: readonly string[]): boolean =>
    names.some((name) => member(schema, name) !== undefined);
  if (has('properties', 'required', 'additionalProperties', 'minProperties', 'patternProperties')) {
    return ['object'];
  }
  if (has('items', 'prefixItems', 'minItems', 'contains')) {
    return ['array'];
  }
  return has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf')
    ? ['number']
    : ['string'];
}
