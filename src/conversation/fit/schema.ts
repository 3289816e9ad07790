import { entryOf } from '../../wire/entry-of.js';
import { isList, isObject, type JsonObject, objectOf } from '../../wire/json.js';

/** Keywords whose value is a schema or a list of schemas. */
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
/** Keywords whose value is an object of schemas by name. */
const named: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);

/**
 * Changes every schema in a JSON Schema, inner ones first. Values that only look like schemas (`enum`, `default`) are
 * left unchanged.
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

/** Returns whether a value of a schema may be an object, if the schema says so. */
export function allowsObject({ type, properties }: JsonObject): boolean {
  if (type === undefined) return properties !== undefined;
  return type === 'object' || (Array.isArray(type) && type.includes('object'));
}

/** Not by assignment: a client's property may be named `__proto__`. */
function mapMembers(value: JsonObject, map: (name: string, value: unknown) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, map(name, each)]));
}

function mapValue(value: unknown, change: (schema: JsonObject) => JsonObject): unknown {
  if (isList(value)) return value.map((each) => mapValue(each, change));
  return isObject(value) ? mapSchemas(value, change) : value;
}

/** Returns whether references are cyclic, or refer to anything but a definition at the root. */
export function isRecursive({ $defs, definitions, ...root }: JsonObject): boolean {
  const references = new Map([['#', referencesIn(root)]]);
  for (const [keyword, list] of Object.entries({ $defs, definitions }))
    for (const [name, schema] of Object.entries(objectOf(list)))
      references.set(`#/${keyword}/${name}`, referencesIn(schema));
  const users = new Map<string, string[]>();
  const open = new Map<string, number>();
  for (const [user, targets] of references) {
    open.set(user, targets.length);
    for (const target of targets) {
      if (!references.has(target)) return true;
      entryOf(users, target, (): string[] => []).push(user);
    }
  }
  // Definitions without references are done; then those that refer only to these, and so on.
  const done = [...references.keys()].filter((name) => open.get(name) === 0);
  for (const name of done)
    for (const user of users.get(name) ?? []) {
      const rest = (open.get(user) ?? 0) - 1;
      open.set(user, rest);
      if (rest === 0) done.push(user);
    }
  return done.length < references.size;
}

function referencesIn(schema: unknown): string[] {
  const references: string[] = [];
  mapValue(schema, (each) => {
    if (typeof each.$ref === 'string') references.push(each.$ref);
    return each;
  });
  return references;
}
