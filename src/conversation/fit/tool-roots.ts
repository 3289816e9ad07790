import { entryOf } from '../../wire/entry-of.js';
import { isList, isObject, type JsonObject, listOf } from '../../wire/json.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest, Tool } from '../request.js';
import { resolvePointer } from '../schema-pointer.js';
import type { FitContext, Fitted } from './fitted.js';
import { allowsObject, mapSchemas } from './schema.js';

/**
 * Vendors require an object at the root of a tool's schema and refuse alternatives there. These are merged into one
 * object with the properties of all. The client validates the arguments against its own schema, as before.
 */
export function fitToolRoots(
  request: ConversationRequest,
  { rules: { toolRoot }, leftOut }: FitContext,
): Fitted | null {
  if (!request.tools.some((tool) => hasAny(tool, toolRoot))) return null;
  const tools = request.tools.map((tool) =>
    hasAny(tool, toolRoot) ? merged(tool, toolRoot, leftOut) : tool,
  );
  return { request: { ...request, tools }, restorer: null };
}

type WithParameters = Tool & { readonly parameters: JsonObject };

function hasAny(tool: Tool, keywords: readonly string[]): tool is WithParameters {
  const { parameters } = tool;
  return parameters !== null && keywords.some((keyword) => parameters[keyword] !== undefined);
}

/**
 * Maximum number of schemas, and of names in them, that are read: references to references can expand beyond all
 * memory.
 */
const mostSchemas = 256;
const mostNames = 10_000;
/** Maximum nesting of schemas, including references. */
const mostLevels = 16;

interface Merging {
  readonly root: JsonObject;
  /** Schemas of each property by their JSON text, so that equal ones are kept once. */
  readonly members: Map<string, Map<string, unknown>>;
  /**
   * JSON texts of schemas and their replacements that were seen, since a definition is read as often as it is
   * referenced.
   */
  readonly texts: Map<unknown, string>;
  readonly left: { schemas: number; names: number; levels: number };
}

function merged(tool: WithParameters, keywords: readonly string[], leftOut: LeftOut): Tool {
  const root = withNamedBranches(tool.parameters);
  const left = { schemas: mostSchemas, names: mostNames, levels: mostLevels };
  const merging: Merging = { root, members: new Map(), texts: new Map(), left };
  const { properties, required, ...beside } = root;
  const all = new Set(listOf(required));
  for (const name of requiredByParts(root, merging)) all.add(name);
  const kept = Object.entries(beside).filter(([name]) => !keywords.includes(name));
  for (const keyword of keywords) if (root[keyword] !== undefined) leftOut.add(keyword);
  const own = isObject(properties) ? Object.entries(properties) : [];
  const names = new Set(own.map(([name]) => name));
  const others = [...merging.members].filter(([name]) => !names.has(name));
  const parameters = {
    // Object.fromEntries accepts every name, including `__proto__`.
    ...Object.fromEntries(kept),
    type: 'object',
    properties: Object.fromEntries([
      ...own,
      ...others.map(([name, schemas]): [string, unknown] => [name, choiceOf(schemas)]),
    ]),
    ...(all.size === 0 ? {} : { required: [...all] }),
  };
  return { ...tool, parameters };
}

function choiceOf(schemas: ReadonlyMap<string, unknown>): unknown {
  const all = [...schemas.values()];
  return all.length === 1 ? all[0] : { anyOf: all };
}

/**
 * Collects the properties that a schema and its parts name.
 * @returns the names that it requires; none for a schema beyond the limits
 */
function read(schema: unknown, merging: Merging): ReadonlySet<unknown> {
  const { left } = merging;
  const required = new Set<unknown>();
  if (!isObject(schema) || left.levels === 0 || left.schemas === 0) return required;
  left.schemas--;
  left.levels--;
  if (isObject(schema.properties)) addMembers(schema.properties, merging);
  for (const name of take(listOf(schema.required), left)) required.add(name);
  for (const name of requiredByParts(schema, merging)) required.add(name);
  const target = definitionOf(schema.$ref, merging.root);
  if (target !== null) for (const name of read(target, merging)) required.add(name);
  left.levels++;
  return required;
}

/** Returns what all of `allOf`, and every branch of a choice, requires. */
function requiredByParts(schema: JsonObject, merging: Merging): Set<unknown> {
  const required = new Set<unknown>();
  for (const part of listOf(schema.allOf)) for (const name of read(part, merging)) required.add(name);
  for (const choice of [schema.anyOf, schema.oneOf]) {
    let inAll: unknown[] | null = null;
    for (const branch of listOf(choice)) {
      // Arguments are an object, so other branches cannot apply.
      if (branch === false || (isObject(branch) && branch.type !== undefined && !allowsObject(branch)))
        continue;
      const inBranch = read(branch, merging);
      inAll = inAll === null ? [...inBranch] : inAll.filter((name) => inBranch.has(name));
    }
    for (const name of inAll ?? []) required.add(name);
  }
  return required;
}

function addMembers(properties: JsonObject, { members, texts, left }: Merging): void {
  for (const name of take(Object.keys(properties), left)) {
    const schema = properties[name];
    const text = texts.get(schema) ?? JSON.stringify(schema);
    texts.set(schema, text);
    entryOf(members, name, () => new Map()).set(text, schema);
  }
}

/** Takes names from what is left. Returns none if there are more than that. */
function take<Name>(names: readonly Name[], left: Merging['left']): readonly Name[] {
  if (names.length > left.names) return [];
  left.names -= names.length;
  return names;
}

/**
 * Definitions are not nested in each other, so that their contents are written at most once more. A reference into the
 * depth of a schema could repeat the same at every level.
 */
const definition = /^#\/(?:\$defs|definitions|components\/schemas)\/[^/]{1,200}$/;

function definitionOf(reference: unknown, root: JsonObject): JsonObject | null {
  return typeof reference === 'string' && definition.test(reference) ? resolvePointer(reference, root) : null;
}

const branchReference = /^#\/(anyOf|oneOf|allOf)\/(\d{1,4})(?=\/|$)/;

/** Adds branches that the schema refers to by their path from the root to its definitions. */
function withNamedBranches(schema: JsonObject): JsonObject {
  const named = new Map<string, unknown>();
  const moved = mapSchemas(schema, (each) => {
    const { $ref } = each;
    const [start = '', keyword = '', index = ''] =
      typeof $ref === 'string' ? (branchReference.exec($ref) ?? []) : [];
    if (start === '' || typeof $ref !== 'string') return each;
    const name = `${keyword}.${index}`;
    named.set(name, keyword);
    return { ...each, $ref: `#/$defs/${name}${$ref.slice(start.length)}` };
  });
  if (named.size === 0) return schema;
  const branches = [...named].map(([name, keyword]): [string, unknown] => {
    const list = moved[String(keyword)];
    return [name, isList(list) ? list[Number(name.slice(name.indexOf('.') + 1))] : undefined];
  });
  const definitions = isObject(moved.$defs) ? moved.$defs : {};
  return { ...moved, $defs: { ...definitions, ...Object.fromEntries(branches) } };
}
