import { resolvePointer } from '../../conversation/schema-pointer.js';
import { isList, isObject, type JsonObject, listOf, textOrNull } from '../../wire/json.js';

/*
 * Converts JSON Schema to the vendor's `Schema` (https://ai.google.dev/api/caching#Schema), a subset of OpenAPI 3.0,
 * for models that do not take JSON Schema itself. What the subset cannot express is left out. The model then knows a
 * little less, and the caller has to check its answer in any case.
 */

type Members = Record<string, unknown>;

/** State while a schema is written. */
interface Writing {
  readonly root: JsonObject;
  /** The schema is the root, directly or by references. */
  readonly isRoot: boolean;
  /** References that are being resolved. One that is among them is cyclic. */
  readonly within: Set<string>;
  /** What may still be written: references to references can expand beyond any memory. */
  readonly left: { schemas: number; characters: number; levels: number };
}

const mostSchemas = 10_000;
/** Most levels of nested schemas. References may nest them deeper than the body is nested. */
const mostLevels = 64;
/**
 * A schema may grow to this multiple of its own length, and small ones a little more. Work on it counts against the
 * same limit.
 */
const mostGrowth = 4;
const spareCharacters = 100_000;
/** Characters that a name, or an entry of a list, counts for besides its own. */
const nameCost = 4;
const types: ReadonlySet<string> = new Set([
  'STRING',
  'NUMBER',
  'INTEGER',
  'BOOLEAN',
  'ARRAY',
  'OBJECT',
  'NULL',
]);
/** Some versions of the API refuse other formats. */
const formats: Readonly<Record<string, readonly string[]>> = {
  STRING: ['date-time', 'enum'],
  NUMBER: ['float', 'double'],
  INTEGER: ['int32', 'int64'],
};
/** Members that describe an object. */
const objectKeys = ['properties', 'required', 'additionalProperties', 'patternProperties'] as const;
const texts = ['title', 'description', 'pattern'] as const;
const bounds = ['minimum', 'maximum'] as const;
/** 64-bit integers, which protocol buffers write as strings. */
export const schemaLimits = [
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
] as const;
/** All members that are read. */
const keywords = [
  '$ref',
  'allOf',
  'anyOf',
  'oneOf',
  'type',
  'nullable',
  'enum',
  'const',
  'default',
  'format',
  'items',
  'prefixItems',
  ...objectKeys,
  ...texts,
  ...bounds,
  ...schemaLimits,
] as const;

/**
 * Replaces the properties of an object that may have any: the API refuses an object without properties (`properties:
 * should be non-empty for OBJECT type`).
 */
const anyProperties: Members = { _: { type: 'STRING', description: 'Unused: any other names will do.' } };

/** How much all schemas of a request may grow, beyond what each of them may by its own length. */
export interface SchemaSpare {
  characters: number;
}

export function schemaSpare(): SchemaSpare {
  return { characters: spareCharacters };
}

/**
 * Converts JSON Schema to a `Schema`. Never throws: a reference that cannot be resolved or is cyclic becomes any
 * object.
 * @param spare the request's, which this schema reduces for the others
 * @returns the schema, whose properties are those of the input; null for any object, which the API refuses as a root
 */
export function encodeSchema(schema: JsonObject, spare = schemaSpare()): JsonObject | null {
  const characters = spare.characters + mostGrowth * JSON.stringify(schema).length;
  const left = { schemas: mostSchemas, characters, levels: mostLevels };
  const written = write(schema, { root: schema, isRoot: true, within: new Set(), left });
  spare.characters = Math.max(0, Math.min(spare.characters, left.characters));
  const isAny =
    written.type === 'OBJECT' &&
    written.anyOf === undefined &&
    (written.properties ?? anyProperties) === anyProperties;
  return isAny ? null : written;
}

function write(schema: unknown, writing: Writing): Members {
  const { left } = writing;
  if (schema === undefined || schema === true) return { type: 'STRING' };
  const members = isObject(schema) && left.levels > 0 && left.schemas-- > 0 ? known(schema) : null;
  if (members === null || !charge(members, writing)) return { type: 'OBJECT', properties: anyProperties };
  left.levels--;
  const written = writeAny(members, writing);
  left.levels++;
  return written;
}

/** Writes a schema that stands inside another one. */
function writeInner(schema: unknown, writing: Writing): Members {
  return write(schema, writing.isRoot ? { ...writing, isRoot: false } : writing);
}

/** Returns the members of a schema that are read. It may have any number of others. */
function known(schema: JsonObject): Members {
  const members: Members = {};
  for (const key of keywords) if (Object.hasOwn(schema, key)) members[key] = schema[key];
  return members;
}

/**
 * Charges the cost of a schema without its inner schemas.
 * @returns false if that was too much
 */
function charge(schema: Members, { left }: Writing): boolean {
  for (const key of Object.keys(schema)) {
    const value = schema[key];
    if (typeof value === 'string') left.characters -= value.length;
    else if (key === 'enum' || key === 'const' || key === 'default')
      left.characters -= JSON.stringify(value)?.length ?? 0;
    else if (Array.isArray(value)) left.characters -= nameCost * value.length;
    else if (key === 'properties' && isObject(value))
      for (const name of Object.keys(value)) left.characters -= nameCost + name.length;
  }
  return left.characters >= 0;
}

function writeAny(schema: JsonObject, writing: Writing): Members {
  if (typeof schema.$ref === 'string') return writeReference(schema, schema.$ref, writing);
  if (Array.isArray(schema.allOf)) return writeAll(schema, schema.allOf, writing);
  const branches = branchesOf(schema);
  if (branches !== null) return writeBranches(schema, branches, writing);
  return writePlain(schema, writing);
}

function writeReference(schema: JsonObject, reference: string, writing: Writing): Members {
  const { within } = writing;
  const target = dereference(schema, reference, writing);
  const isFirst = !within.has(reference);
  within.add(reference);
  const members = write(target, writing);
  if (isFirst) within.delete(reference);
  return members;
}

/** Resolves a reference. The members beside it, such as a description, take precedence. */
function dereference(
  { $ref, ...beside }: JsonObject,
  reference: string,
  { within, root }: Writing,
): JsonObject {
  const target = within.has(reference) ? null : resolvePointer(reference, root);
  return target === null ? { type: 'object', ...beside } : { ...known(target), ...beside };
}

/**
 * Several schemas that all apply, as one: all of their properties and required names, and the first value of every
 * other member.
 */
interface Merged {
  readonly members: Members;
  readonly properties: Map<string, unknown>;
  readonly required: Set<unknown>;
  /** References that were resolved for it. */
  readonly references: string[];
}

function writeAll(schema: JsonObject, parts: readonly unknown[], writing: Writing): Members {
  const merged: Merged = { members: {}, properties: new Map(), required: new Set(), references: [] };
  mergeAll(merged, schema, parts, writing);
  const { members, properties, required } = merged;
  // Object.fromEntries accepts every name, including `__proto__`.
  if (properties.size > 0) members.properties = Object.fromEntries(properties);
  if (required.size > 0) members.required = [...required];
  const { within } = writing;
  const added = merged.references.filter((reference) => !within.has(reference));
  for (const reference of added) within.add(reference);
  const written = write(members, writing);
  for (const reference of added) within.delete(reference);
  return written;
}

function mergeAll(
  merged: Merged,
  { allOf, ...base }: JsonObject,
  parts: readonly unknown[],
  writing: Writing,
): void {
  merge(merged, base);
  for (const part of parts) mergePart(merged, part, writing);
}

function merge({ members, properties, required }: Merged, part: JsonObject): void {
  for (const key of Object.keys(part)) {
    const value = part[key];
    if (key === 'properties' && isObject(value)) {
      for (const name of Object.keys(value)) if (!properties.has(name)) properties.set(name, value[name]);
    } else if (key === 'required') {
      for (const name of listOf(value)) required.add(name);
    } else if (!Object.hasOwn(members, key)) {
      members[key] = value;
    }
  }
}

function mergePart(merged: Merged, given: unknown, writing: Writing): void {
  const { left, within } = writing;
  const part = isObject(given) && left.levels > 0 && left.schemas-- > 0 ? known(given) : null;
  if (part === null || !charge(part, writing)) return;
  left.levels--;
  if (typeof part.$ref === 'string') {
    const reference = part.$ref;
    const target = dereference(part, reference, writing);
    const isFirst = !within.has(reference);
    within.add(reference);
    merged.references.push(reference);
    mergePart(merged, target, writing);
    if (isFirst) within.delete(reference);
  } else if (Array.isArray(part.allOf)) {
    mergeAll(merged, part, part.allOf, writing);
  } else {
    merge(merged, part);
  }
  left.levels++;
}

function branchesOf({ anyOf, oneOf, type }: JsonObject): readonly unknown[] | null {
  if (Array.isArray(anyOf) && anyOf.some(saysMore)) return anyOf;
  if (Array.isArray(oneOf) && oneOf.some(saysMore)) return oneOf;
  if (!isList(type)) return null;
  const named = [...new Set(type)].filter(isTypeName);
  return named.filter((each) => each !== 'null').length > 1 ? named.map((each) => ({ type: each })) : null;
}

/** Returns false for a branch that only requires some of its sibling's properties. */
function saysMore(branch: unknown): boolean {
  return isObject(branch) && keywords.some((key) => key !== 'required' && Object.hasOwn(branch, key));
}

function writeBranches(schema: JsonObject, branches: readonly unknown[], writing: Writing): Members {
  const { anyOf, oneOf, ...base } = schema;
  const nullable = schema.nullable === true || branches.some(isNull);
  const others = branches.filter((branch) => !isNull(branch));
  // Only null remains: the vendor refuses an empty choice.
  if (others.length === 0) return withNull(write({ ...base, type: base.type ?? 'string' }, writing), true);
  const [only] = others;
  if (others.length === 1 && isObject(only)) {
    const type = only.type ?? base.type;
    const one = {
      ...known(only),
      ...base,
      ...joinProperties(only, base),
      ...(type === undefined ? {} : { type }),
    };
    return withNull(write(one, writing), nullable);
  }
  const written = others.map((branch) => {
    const one = Array.isArray(base.type) ? { ...base, ...typeOf(branch), description: undefined } : branch;
    return withNull(writeInner(one, writing), nullable);
  });
  // Some versions of the API refuse anything beside `anyOf`.
  const description = textOrNull(base.description);
  const [first] = written;
  if (description !== null && first !== undefined) first.description ??= description;
  const { properties } = base;
  if (!isObject(properties) || Object.keys(properties).length === 0 || Array.isArray(base.type))
    return { anyOf: written };
  return withNull({ ...writePlain(base, writing), anyOf: written }, nullable);
}

function typeOf(branch: unknown): JsonObject {
  return isObject(branch) ? { type: branch.type } : {};
}

function joinProperties(one: JsonObject, other: JsonObject): JsonObject {
  if (!isObject(one.properties) || !isObject(other.properties)) return {};
  return { properties: { ...one.properties, ...other.properties } };
}

function isTypeName(name: unknown): boolean {
  return typeof name === 'string' && types.has(name.toUpperCase());
}

function isNull(branch: unknown): boolean {
  return isObject(branch) && (branch.type === 'null' || branch.const === null);
}

function withNull(members: Members, nullable: boolean): Members {
  return nullable ? { ...members, nullable: true } : members;
}

function writePlain(schema: JsonObject, writing: Writing): Members {
  const members: Members = {};
  const values = 'const' in schema ? [schema.const] : schema.enum;
  const type = typeName(schema, values, writing);
  members.type = type;
  for (const name of texts) if (typeof schema[name] === 'string') members[name] = schema[name];
  if (typeof schema.format === 'string' && formats[type]?.includes(schema.format))
    members.format = schema.format;
  if (isNullable(schema, values)) members.nullable = true;
  if (Array.isArray(values)) addValues(members, values);
  if (schema.default !== undefined && schema.default !== null) members.default = schema.default;
  for (const name of bounds) if (typeof schema[name] === 'number') members[name] = schema[name];
  for (const name of schemaLimits)
    if (Number.isSafeInteger(schema[name])) members[name] = String(schema[name]);
  if (type === 'ARRAY') members.items = writeItems(schema, writing);
  if (isObject(schema.properties)) addProperties(members, schema.properties, schema.required, writing);
  if (type === 'OBJECT') members.properties ??= anyProperties;
  return members;
}

/** Returns the type in the vendor's spelling. Without a type, the other members of the schema determine it. */
function typeName(schema: JsonObject, values: unknown, { isRoot }: Writing): string {
  const { type, items, prefixItems } = schema;
  const named = Array.isArray(type) ? type.find((each: unknown) => each !== 'null') : type;
  const upper = typeof named === 'string' ? named.toUpperCase() : '';
  if (types.has(upper)) return upper;
  if (objectKeys.some((key) => schema[key] !== undefined)) return 'OBJECT';
  if (items !== undefined || prefixItems !== undefined) return 'ARRAY';
  const value = Array.isArray(values) ? values.find((each: unknown) => each !== null) : undefined;
  if (typeof value === 'number') return Number.isInteger(value) ? 'INTEGER' : 'NUMBER';
  if (typeof value === 'boolean') return 'BOOLEAN';
  // A string can express most of the values that any type may have.
  return isRoot || typeof value === 'object' ? 'OBJECT' : 'STRING';
}

function isNullable({ type, nullable }: JsonObject, values: unknown): boolean {
  if (nullable === true) return true;
  if (Array.isArray(type) && type.includes('null') && type.length > 1) return true;
  return Array.isArray(values) && values.length > 1 && values.includes(null);
}

/** `enum` is only for strings. Other permitted values can only be described. */
function addValues(members: Members, values: readonly unknown[]): void {
  const named = values.filter((value) => value !== null);
  if (members.type === 'STRING' && named.every((value) => typeof value === 'string' && value !== '')) {
    if (named.length > 0) members.enum = named;
    return;
  }
  const listed = `One of: ${named.map((value) => JSON.stringify(value)).join(', ')}.`;
  members.description = typeof members.description === 'string' ? `${members.description} ${listed}` : listed;
}

/** An array has to describe its items. */
function writeItems({ items, prefixItems }: JsonObject, writing: Writing): Members {
  const tuple = Array.isArray(prefixItems) ? prefixItems : items;
  if (!Array.isArray(tuple)) return writeInner(items, writing);
  return writeInner(tuple.length === 1 ? tuple[0] : { anyOf: tuple }, writing);
}

function addProperties(members: Members, properties: JsonObject, required: unknown, writing: Writing): void {
  const names = Object.keys(properties);
  if (names.length === 0) return;
  // Object.fromEntries accepts every name, including `__proto__`.
  members.properties = Object.fromEntries(names.map((name) => [name, writeInner(properties[name], writing)]));
  const known = [...new Set(listOf(required))].filter(
    (name) => typeof name === 'string' && Object.hasOwn(properties, name),
  );
  if (known.length > 0) members.required = known;
}
