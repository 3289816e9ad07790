import { keywords as bodyKeywords } from '../schema/node.js';

/** A schema in code: of TypeBox, or written by hand. */
export type SourceSchema = object | boolean;

/** Writes a schema nested in another one. */
type WriteSchema = (schema: SourceSchema, at: Step) => unknown;

/** The step from a schema to one nested in it. */
export type Step =
  | { readonly kind: 'property'; readonly name: string }
  | { readonly kind: 'items' }
  | { readonly kind: 'branch' };

/**
 * The form of a keyword's value in JSON Schema 2020-12: a plain value, a schema, a list of schemas, or schemas by name.
 */
type Holds = 'plain' | 'schema' | 'list' | 'named';

/** Every keyword that is written. Other members of schema objects belong to a library and are left out. */
const keywords: ReadonlyMap<string, Holds> = new Map<string, Holds>([
  ...[
    ...Object.keys(bodyKeywords),
    ...['description', 'exclusiveMinimum', 'maxLength', 'pattern', 'format', 'contentMediaType'],
  ].map((keyword): [string, Holds] => [keyword, 'plain']),
  ['not', 'schema'],
  ['anyOf', 'list'],
  ['properties', 'named'],
  ['additionalProperties', 'schema'],
  ['items', 'schema'],
]);

/** Keywords that do not constrain null, so that a type with null may be combined with them. */
const nullAgnostic: ReadonlySet<string> = new Set([
  ...['type', 'description', 'minLength', 'maxLength', 'pattern', 'minimum', 'maximum', 'exclusiveMinimum'],
  ...['items', 'minItems', 'maxItems', 'properties', 'required', 'additionalProperties', 'maxProperties'],
]);

/**
 * Writes one schema as plain JSON Schema. A union with null becomes one schema of two types if that is equivalent.
 * @param write writes each nested schema
 */
export function writeSchema(schema: object, write: WriteSchema): JsonSchema {
  const written: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(foldNull(schema))) {
    const holds = keywords.get(keyword);
    if (holds === undefined || value === undefined) continue;
    if (holds === 'named' && Object.keys(value as object).length === 0) continue;
    written[keyword] = writeKeyword(keyword, holds, value, write);
  }
  return written;
}

/** The schemas directly nested in a schema, with the step to each. */
export function innerSchemas(schema: object): readonly (readonly [SourceSchema, Step])[] {
  const inner: (readonly [SourceSchema, Step])[] = [];
  writeSchema(schema, (found, at) => {
    inner.push([found, at]);
    return null;
  });
  return inner;
}

/** The other branch of a union with null; any other schema is returned unchanged. */
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
      // A copy, so that changes of the document do not affect the schema that checks requests.
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

/** Writes a union with null as one schema of two types, if that is equivalent. */
function foldNull(schema: object): object {
  const other = withoutNull(schema);
  const isBare = known(schema).length === 1;
  const { type } = other as { readonly type?: unknown };
  const folds =
    other !== schema &&
    isBare &&
    typeof type === 'string' &&
    known(other).every((keyword) => nullAgnostic.has(keyword));
  return folds ? { ...other, type: [type, 'null'] } : schema;
}

function known(schema: object): readonly string[] {
  return Object.keys(schema).filter((keyword) => keywords.has(keyword));
}

function isNull(schema: SourceSchema): boolean {
  return typeof schema === 'object' && (schema as { readonly type?: unknown }).type === 'null';
}

/*
 * The OpenAPI 3.1.0 types used by several parts of the gateway's document. All of them are plain JSON.
 */

/** A schema of JSON Schema 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A reference to an entry of `components`. */
export interface Reference {
  readonly $ref: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

/** Bodies, by content type. */
export type Content = Readonly<Record<string, { readonly schema: JsonSchema | Reference }>>;

export interface Response {
  readonly description: string;
  /** By name. */
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: Content;
}
