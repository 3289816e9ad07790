import {
  innerSchemas,
  type JsonSchema,
  type Reference,
  type SourceSchema,
  type Step,
  withoutNull,
  writeSchema,
} from './json-schema.js';

/** A schema with a name of its own in the document. */
export interface NamedSchema {
  /** Letters and digits only. */
  readonly name: string;
  readonly schema: object;
}

export function named(name: string, schema: object): NamedSchema {
  return { name, schema };
}

/** A reference to a named schema. */
export function schemaReference({ name }: NamedSchema): Reference {
  return { $ref: `#/components/schemas/${name}` };
}

/** Schemas shorter than this, in characters of JSON, are written inline: a reference would not be shorter. */
const minSharedLength = 160;

/**
 * Writes the schemas of the document. A schema object used several times is written once, under a name made from the path
 * to its first use.
 * @param roots schemas with unique names
 * @returns JSON Schemas by name, the roots first
 * @throws {Error} for two roots of one name
 */
export function writeSchemas(roots: readonly NamedSchema[]): Readonly<Record<string, JsonSchema>> {
  const names = nameSchemas(roots);
  const write = (schema: SourceSchema): unknown => {
    if (typeof schema === 'boolean') return schema;
    const name = names.get(schema);
    if (name !== undefined) return schemaReference({ name, schema });
    const other = withoutNull(schema);
    const otherName = other === schema ? undefined : names.get(other);
    if (otherName === undefined) return writeSchema(schema, write);
    return { anyOf: [schemaReference({ name: otherName, schema: other }), { type: 'null' }] };
  };
  return Object.fromEntries([...names].map(([schema, name]) => [name, writeSchema(schema, write)]));
}

interface Use {
  count: number;
  readonly suggestedName: string;
}

/** The schemas that get a name: the roots, and those used more than once that are not small. */
function nameSchemas(roots: readonly NamedSchema[]): ReadonlyMap<object, string> {
  const names = new Map<object, string>();
  const taken = new Set<string>();
  for (const { name, schema } of roots) {
    if (taken.has(name)) throw new Error(`Two schemas of the OpenAPI document have the name ${name}.`);
    taken.add(name);
    names.set(schema, name);
  }
  for (const [schema, { count, suggestedName }] of countUses(roots)) {
    if (count < 2 || names.has(schema) || JSON.stringify(schema).length < minSharedLength) continue;
    const name = freeName(suggestedName, taken);
    taken.add(name);
    names.set(schema, name);
  }
  return names;
}

function countUses(roots: readonly NamedSchema[]): ReadonlyMap<object, Use> {
  const uses = new Map<object, Use>();
  const visit = (schema: SourceSchema, way: readonly string[]): void => {
    if (typeof schema === 'boolean') return;
    // Lists and unions with null get no name; the schema inside them does.
    const inside = unwrapped(schema, way);
    const known = uses.get(inside.schema);
    if (known !== undefined) {
      known.count++;
      return;
    }
    const here = [...inside.way, ...kindOf(inside.schema)];
    uses.set(inside.schema, { count: 1, suggestedName: here.map(capitalized).join('') });
    for (const [inner, step] of innerSchemas(inside.schema)) visit(inner, wayTo(inside.way, step));
  };
  for (const { name, schema } of roots) visit(schema, [name.replace(/Request$/, '')]);
  return uses;
}

interface SchemaPosition {
  readonly schema: object;
  readonly way: readonly string[];
}

function unwrapped(schema: object, way: readonly string[]): SchemaPosition {
  const other = withoutNull(schema);
  if (other !== schema) return unwrapped(other, way);
  const { type, items } = schema as { readonly type?: unknown; readonly items?: SourceSchema };
  if (type !== 'array' || typeof items !== 'object') return { schema, way };
  return unwrapped(items, wayTo(way, { kind: 'items' }));
}

/** The path consists of the root's name and the last property; more would make the names of deep schemas long. */
function wayTo([root = '', last]: readonly string[], step: Step): readonly string[] {
  switch (step.kind) {
    case 'property':
      return [root, step.name];
    case 'items':
      return last === undefined ? [root] : [root, last.replace(/s$/, '')];
    case 'branch':
      return last === undefined ? [root] : [root, last];
  }
}

/** The words that tell a branch of a union from the others. */
function kindOf(schema: object): readonly string[] {
  const { properties = {} } = schema as {
    readonly properties?: Readonly<Record<string, { readonly const?: unknown }>>;
  };
  const kind = properties.type?.const ?? properties.role?.const;
  return typeof kind === 'string' ? [kind] : [];
}

/** The wanted name, with a number appended if it is taken. */
export function freeName(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted;
  for (let number = 2; ; number++) {
    const name = `${wanted}${number}`;
    if (!taken.has(name)) return name;
  }
}

/** `input_text` -> `InputText` */
function capitalized(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('');
}
