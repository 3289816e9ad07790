import { isList, isObject, type JsonObject } from '../../wire/json.js';

/** Members whose value is a schema, or a list of them. */
const nested: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'additionalItems',
  'contains',
  'anyOf',
  'oneOf',
  'allOf',
  'not',
  'if',
  'then',
  'else',
  'additionalProperties',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
]);
/** Members whose value has a schema under each name. */
const named: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);

/**
 * A JSON Schema with each schema in it changed, the inner ones first. Values that only look like a schema (`enum`,
 * `default`) stay.
 */
export function mapSchemas(schema: JsonObject, change: (schema: JsonObject) => JsonObject): JsonObject {
  const mapEach = (value: JsonObject): JsonObject =>
    mapMembers(value, (_name, each) => mapValue(each, change));
  return change(
    mapMembers(schema, (name, value) => {
      if (nested.has(name)) return mapValue(value, change);
      return named.has(name) && isObject(value) ? mapEach(value) : value;
    }),
  );
}

/** Not by assignment: a client may call a member `__proto__`. */
function mapMembers(value: JsonObject, map: (name: string, value: unknown) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, map(name, each)]));
}

function mapValue(value: unknown, change: (schema: JsonObject) => JsonObject): unknown {
  if (isList(value)) return value.map((each) => mapValue(each, change));
  return isObject(value) ? mapSchemas(value, change) : value;
}
