import { asSchema, keywords, type SchemaNode } from './node.js';

/** What a subschema that is shared is replaced by (JSON Schema 2020-12, section 8.2.3.1). */
interface SharedSchema {
  readonly $defs: Readonly<Record<string, unknown>>;
}

/**
 * The same schema, in which objects that stand at several places are defined once. A check is compiled of it whose parts
 * are functions: as one expression that holds each of them at every place, that of a generateContent request is larger
 * than what V8 optimises, and takes 20 times as long.
 */
export function withShared(schema: SchemaNode): SharedSchema {
  const times = new Map<SchemaNode, number>();
  const count = (node: SchemaNode): void => {
    const before = times.get(node) ?? 0;
    times.set(node, before + 1);
    if (before === 0) for (const part of partsOf(node)) count(part);
  };
  count(schema);
  const $defs: Record<string, unknown> = {};
  const names = new Map<SchemaNode, string>();
  const rewrite = (value: unknown): unknown => {
    if (typeof value !== 'object') return value;
    const node = asSchema(value);
    if ((times.get(node) ?? 0) < 2 || node.properties === undefined) return membersOf(node);
    let name = names.get(node);
    if (name === undefined) {
      name = `shared${names.size}`;
      names.set(node, name);
      $defs[name] = membersOf(node);
    }
    return { $ref: `#/$defs/${name}` };
  };
  const membersOf = (node: SchemaNode): object =>
    Object.fromEntries(
      Object.entries(node).map(([keyword, value]) => [keyword, rewritten(keyword, value, rewrite)]),
    );
  return { ...membersOf(schema), $defs };
}

function rewritten(keyword: string, value: unknown, rewrite: (node: unknown) => unknown): unknown {
  if (keywords[keyword] === 'schema') return rewrite(value);
  if (keywords[keyword] !== 'schemas' || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(rewrite);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, rewrite(part)]));
}

function partsOf(node: SchemaNode): SchemaNode[] {
  const parts = Object.entries(node).flatMap(([keyword, value]): unknown[] => {
    if (keywords[keyword] === 'schema') return [value];
    return keywords[keyword] === 'schemas' ? Object.values(value) : [];
  });
  return parts.filter((part) => typeof part === 'object').map(asSchema);
}
