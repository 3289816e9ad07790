import { keywords as bodyKeywords } from '../schema/node.js';
import type { JsonSchema } from './types.js';

/** A schema as it is found in code: of TypeBox, or written by hand. */
export type SourceSchema = object | boolean;

/** Gives what stands for a schema inside another one. */
type WriteSchema = (schema: SourceSchema, at: Step) => unknown;

/** How a schema is reached from the one around it. */
export type Step =
  | { readonly kind: 'property'; readonly name: string }
  | { readonly kind: 'items' }
  | { readonly kind: 'branch' };

/** What a keyword of JSON Schema 2020-12 holds: a plain value, a schema, a list of schemas, or schemas by name. */
type Holds = 'plain' | 'schema' | 'list' | 'named';

/** Every keyword that is written; whatever else a schema object carries belongs to a library and is left out. */
const keywords: ReadonlyMap<string, Holds> = new Map<string, Holds>([
  ...Object.keys(bodyKeywords).map((keyword): [string, Holds] => [keyword, 'plain']),
  ['not', 'schema'],
  ['anyOf', 'list'],
  ['allOf', 'list'],
  ['oneOf', 'list'],
  ['prefixItems', 'list'],
  ['properties', 'named'],
  ['patternProperties', 'named'],
  ['additionalProperties', 'schema'],
  ['propertyNames', 'schema'],
  ['items', 'schema'],
  ['contains', 'schema'],
  ['pattern', 'plain'],
  ['format', 'plain'],
  ['maxLength', 'plain'],
  ['minProperties', 'plain'],
  ['uniqueItems', 'plain'],
  ['multipleOf', 'plain'],
  ['contentMediaType', 'plain'],
  ['contentEncoding', 'plain'],
  ['default', 'plain'],
  ['examples', 'plain'],
  ['deprecated', 'plain'],
]);

/** Keywords that say nothing of null, so that a type that allows it may stand beside them. */
const deafToNull: ReadonlySet<string> = new Set([
  'type',
  'title',
  'description',
  'minLength',
  'maxLength',
  'pattern',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'items',
  'minItems',
  'maxItems',
  'properties',
  'required',
  'additionalProperties',
  'minProperties',
  'maxProperties',
]);

const types: ReadonlySet<string> = new Set([
  'string',
  'number',
  'integer',
  'boolean',
  'object',
  'array',
  'null',
]);

/** Under this name TypeBox keeps checks that are code. */
const refinements = '~refine';
const unsayable = 'Further rules apply that a schema cannot say.';

/**
 * Writes one schema as plain JSON Schema, "this or null" as one schema of two types where that says the same. Values that
 * are no JSON (a type of TypeBox that only JavaScript has) become a schema that takes anything, with a description that
 * says what was meant; so does a check that is code.
 * @param write gives what stands for each schema inside it
 */
export function writeSchema(schema: object, write: WriteSchema): JsonSchema {
  const folded = foldNull(schema);
  const written: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(folded)) {
    const holds = keywords.get(keyword);
    if (holds === undefined || value === undefined) continue;
    if (keyword === 'type' && !isJsonType(value)) return { description: `A value of type ${String(value)}.` };
    if (holds === 'named' && Object.keys(value as object).length === 0) continue;
    written[keyword] = writeKeyword(keyword, holds, value, write);
  }
  if (Object.hasOwn(schema, refinements)) {
    const { description } = written;
    written.description = typeof description === 'string' ? `${description} ${unsayable}` : unsayable;
  }
  return written;
}

/** Every schema that stands right inside another one, with the way to it. */
export function innerSchemas(schema: object): readonly (readonly [SourceSchema, Step])[] {
  const inner: (readonly [SourceSchema, Step])[] = [];
  writeSchema(schema, (found, at) => {
    inner.push([found, at]);
    return null;
  });
  return inner;
}

/** The other branch of a schema that takes null beside one thing; the schema itself where it is none. */
export function withoutNull(schema: object): object {
  const { anyOf } = schema as { readonly anyOf?: unknown };
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [first, second] = anyOf as [SourceSchema, SourceSchema];
  if (isNull(second) && typeof first === 'object') return first;
  return isNull(first) && typeof second === 'object' ? second : schema;
}

function writeKeyword(keyword: string, holds: Holds, value: unknown, write: WriteSchema): unknown {
  switch (holds) {
    case 'plain':
      // A copy: whoever changes the document must not change the schema that requests are checked with.
      return structuredClone(value);
    case 'schema':
      return write(value as SourceSchema, { kind: keyword === 'items' ? 'items' : 'branch' });
    case 'list':
      return (value as readonly SourceSchema[]).map((one) => write(one, { kind: 'branch' }));
    case 'named':
      return Object.fromEntries(
        Object.entries(value as Readonly<Record<string, SourceSchema>>).map(([name, one]) => [
          name,
          write(one, { kind: 'property', name }),
        ]),
      );
  }
}

/** Writes "this or null" as one schema of two types where that says the same. */
function foldNull(schema: object): object {
  const other = withoutNull(schema);
  const isBare = known(schema).length === 1;
  const { type } = other as { readonly type?: unknown };
  const folds =
    other !== schema &&
    isBare &&
    typeof type === 'string' &&
    !Object.hasOwn(other, refinements) &&
    known(other).every((keyword) => deafToNull.has(keyword));
  return folds ? { ...other, type: [type, 'null'] } : schema;
}

function known(schema: object): readonly string[] {
  return Object.keys(schema).filter((keyword) => keywords.has(keyword));
}

function isNull(schema: SourceSchema): boolean {
  return typeof schema === 'object' && (schema as { readonly type?: unknown }).type === 'null';
}

function isJsonType(type: unknown): boolean {
  return Array.isArray(type) ? type.every((one) => types.has(one)) : types.has(String(type));
}
