import { entryOf } from '../../wire/entry-of.js';
import { isList, isObject, type JsonObject, listOf } from '../../wire/json.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest, Tool } from '../request.js';
import { resolvePointer } from '../schema-pointer.js';
import type { FitContext, Fitted } from './fitted.js';
import { allowsObject, mapSchemas } from './schema.js';

/**
 * Vendors want an object at the root of a tool's schema, and refuse a choice among several there: it becomes one object
 * with the members of them all. What the model sends fits the client's schema or not, as before: the client checks it.
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

/** So many schemas are looked into, and so many names in them: references can stand for more than there is memory. */
const mostSchemas = 256;
const mostNames = 10_000;
/** Schemas within each other, by references as well. */
const mostLevels = 16;

interface Merging {
  readonly root: JsonObject;
  /** Schemas of each member, by their JSON text, which stands here once. */
  readonly members: Map<string, Map<string, unknown>>;
  /** Texts of schemas, and of what stands in their place, that were met: a definition is met as often as it is named. */
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
    // Object.fromEntries takes every name, `__proto__` as well.
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
 * Notes the members that a schema names, and those of its parts.
 * @returns the names that it requires; none for a schema that is not looked into any more
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

/** All of `allOf`, and what every branch of a choice requires. */
function requiredByParts(schema: JsonObject, merging: Merging): Set<unknown> {
  const required = new Set<unknown>();
  for (const part of listOf(schema.allOf)) for (const name of read(part, merging)) required.add(name);
  for (const choice of [schema.anyOf, schema.oneOf]) {
    let inAll: unknown[] | null = null;
    for (const branch of listOf(choice)) {
      // Arguments are an object: no other branch can be meant.
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

/** The names while there are any left; none where there are more of them. */
function take<Name>(names: readonly Name[], left: Merging['left']): readonly Name[] {
  if (names.length > left.names) return [];
  left.names -= names.length;
  return names;
}

/**
 * Definitions stand beside each other: what they hold is written once more at most. A reference into the depth of a
 * schema could write the same again at every level.
 */
const definition = /^#\/(?:\$defs|definitions|components\/schemas)\/[^/]{1,200}$/;

function definitionOf(reference: unknown, root: JsonObject): JsonObject | null {
  return typeof reference === 'string' && definition.test(reference) ? resolvePointer(reference, root) : null;
}

const branchReference = /^#\/(anyOf|oneOf|allOf)\/(\d{1,4})(?=\/|$)/;

/** Branches that the schema refers to by their places at its root stand among its definitions as well. */
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
