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
  const mapped: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(schema)) {
    if (nested.has(name)) mapped[name] = mapValue(value, change);
    else if (named.has(name) && isObject(value))
      mapped[name] = Object.fromEntries(
        Object.entries(value).map(([key, each]) => [key, mapValue(each, change)]),
      );
    else mapped[name] = value;
  }
  return change(mapped);
}

function mapValue(value: unknown, change: (schema: JsonObject) => JsonObject): unknown {
  if (isList(value)) return value.map((each) => mapValue(each, change));
  return isObject(value) ? mapSchemas(value, change) : value;
}
