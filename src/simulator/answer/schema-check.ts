import { isDeepStrictEqual } from 'node:util';
import { isObject, type JsonObject, member } from '../http/json.js';

const deepest = 300;

/** A schema document being worked on. Schemas can refer to themselves without end, so the work is bounded. */
export interface SchemaWork {
  /** What local references are looked up in. */
  readonly root: unknown;
  /** Steps still allowed; without any, nothing fits. */
  left: number;
}

/** What a local reference (`#`, `#/$defs/name`) names in a schema, or undefined. */
export function resolveReference(root: unknown, reference: unknown): unknown {
  if (typeof reference !== 'string' || !reference.startsWith('#')) {
    return undefined;
  }
  let found: unknown = root;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    found = isObject(found) ? member(found, name) : Array.isArray(found) ? found[Number(name)] : undefined;
  }
  return found;
}

/**
 * Whether a value fits a JSON Schema (draft 2020-12, the keywords that function parameters and structured outputs use;
 * `format` is not checked, unknown keywords are ignored).
 */
export function fits(schema: unknown, value: unknown, work: SchemaWork, depth = 0): boolean {
  work.left -= 1;
  if (work.left < 0 || depth > deepest) {
    return false;
  }
  if (!isObject(schema)) {
    return schema !== false;
  }
  const check = (sub: unknown, of: unknown): boolean => fits(sub, of, work, depth + 1);
  const list = (name: string): readonly unknown[] | null => {
    const found = schema[name];
    return Array.isArray(found) ? found : null;
  };
  const types = typeof schema.type === 'string' ? [schema.type] : list('type');
  return (
    (schema.$ref === undefined || check(resolveReference(work.root, schema.$ref) ?? true, value)) &&
    (types === null || types.some((type) => hasType(type, value))) &&
    (!Object.hasOwn(schema, 'const') || isDeepStrictEqual(schema.const, value)) &&
    (list('enum')?.some((one) => isDeepStrictEqual(one, value)) ?? true) &&
    (list('allOf')?.every((sub) => check(sub, value)) ?? true) &&
    (list('anyOf')?.some((sub) => check(sub, value)) ?? true) &&
    (list('oneOf') === null || list('oneOf')?.filter((sub) => check(sub, value)).length === 1) &&
    (schema.not === undefined || !check(schema.not, value)) &&
    (typeof value !== 'number' || numberFits(schema, value)) &&
    (typeof value !== 'string' || stringFits(schema, value)) &&
    (!Array.isArray(value) || arrayFits(schema, value, check)) &&
    (!isObject(value) || objectFits(schema, value, check))
  );
}

type Check = (schema: unknown, value: unknown) => boolean;

function hasType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function within(value: number, least: unknown, most: unknown): boolean {
  return (typeof least !== 'number' || value >= least) && (typeof most !== 'number' || value <= most);
}

function numberFits(schema: JsonObject, value: number): boolean {
  const { exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const quotient = typeof multipleOf === 'number' ? value / multipleOf : 0;
  return (
    within(value, schema.minimum, schema.maximum) &&
    (typeof exclusiveMinimum !== 'number' || value > exclusiveMinimum) &&
    (typeof exclusiveMaximum !== 'number' || value < exclusiveMaximum) &&
    // 0.3 is a multiple of 0.1 for whoever wrote the schema, though not in binary.
    Math.abs(quotient - Math.round(quotient)) < 1e-9
  );
}

function stringFits(schema: JsonObject, value: string): boolean {
  const bounded = schema.minLength !== undefined || schema.maxLength !== undefined;
  return (
    (!bounded || within([...value].length, schema.minLength, schema.maxLength)) &&
    (typeof schema.pattern !== 'string' || matches(schema.pattern, value))
  );
}

function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(value);
  } catch {
    return true;
  }
}

function arrayFits(schema: JsonObject, value: readonly unknown[], check: Check): boolean {
  const itemOf = itemSchemas(schema);
  return (
    within(value.length, schema.minItems, schema.maxItems) &&
    value.every((item, index) => check(itemOf(index), item)) &&
    (schema.contains === undefined || value.some((item) => check(schema.contains, item))) &&
    (schema.uniqueItems !== true || allDifferent(value))
  );
}

function allDifferent(value: readonly unknown[]): boolean {
  return value.every((item, index) =>
    value.slice(index + 1).every((other) => !isDeepStrictEqual(item, other)),
  );
}

/** The schema of an array's item by its index, also as drafts before 2020-12 write tuples. */
export function itemSchemas(schema: JsonObject): (index: number) => unknown {
  const tuple = Array.isArray(schema.items) ? schema.items : schema.prefixItems;
  const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
  return (index) => (Array.isArray(tuple) && index < tuple.length ? tuple[index] : (rest ?? true));
}

function objectFits(schema: JsonObject, value: JsonObject, check: Check): boolean {
  const names = Object.keys(value);
  const required = Array.isArray(schema.required) ? schema.required : [];
  return (
    within(names.length, schema.minProperties, schema.maxProperties) &&
    required.every((name) => typeof name !== 'string' || Object.hasOwn(value, name)) &&
    names.every((name) => propertySchemas(schema, name).every((sub) => check(sub, member(value, name))))
  );
}

/** Every schema that a property of this name has to fit. */
export function propertySchemas(schema: JsonObject, name: string): readonly unknown[] {
  const found: unknown[] = [];
  if (isObject(schema.properties) && Object.hasOwn(schema.properties, name)) {
    found.push(schema.properties[name]);
  }
  for (const [pattern, sub] of Object.entries(
    isObject(schema.patternProperties) ? schema.patternProperties : {},
  )) {
    if (matches(pattern, name)) {
      found.push(sub);
    }
  }
  return found.length > 0 ? found : [schema.additionalProperties ?? true];
}
