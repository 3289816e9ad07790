import type { GuardSpec, MemberGuard } from '../wire/member-guard.js';
import {
  backgroundMember,
  continuationMembers,
  itemsMember,
  outputMembers,
  toolsMember,
} from '../wire/routed-members.js';
import type { SchemaNode } from './node.js';

/*
 * A schema in the form that the acceptor walks: the rules for each kind of JSON value, one field per kind, so that the
 * first byte of a value selects its rule. Every object of a kind has all its fields from the start, in one order. Only
 * what the schemas of untouched bodies need is supported; values with other keywords are left to the full check.
 */

/** Keys whose spans a walk records. Their positions count from 1. */
export const guardedKeys: readonly string[] = [
  ...['model', 'stream', 'stream_options'],
  ...outputMembers.maxTokens,
  ...outputMembers.choices,
  ...outputMembers.configs,
  ...continuationMembers,
  backgroundMember,
  toolsMember,
];
const lastUnique = 3;
const lastMaxTokens = lastUnique + outputMembers.maxTokens.length;
const choices = lastMaxTokens + 1;
/** Positions among these. Keys up to `lastUnique` must not be repeated; `itemTools` is that of the key in items. */
export const guards = {
  lastUnique,
  lastMaxTokens,
  choices,
  lastConfig: choices + outputMembers.configs.length,
  itemTools: guardedKeys.length + 1,
} as const;

/** The rules for a value. */
export interface AcceptNode {
  /** Accepts any JSON. */
  readonly anything: boolean;
  /** Which strings are accepted; null for none. */
  readonly text: 'any' | 'filled' | null;
  readonly number: NumberRule | null;
  readonly object: ObjectRule | null;
  /** The rules for the items of a list; null if it may be none. */
  readonly items: AcceptNode | null;
  readonly yes: boolean;
  readonly no: boolean;
  readonly nil: boolean;
}

/** Any number, or an integer within bounds. */
export interface NumberRule {
  readonly integer: boolean;
  readonly minimum: number;
  readonly maximum: number;
}

export interface ObjectRule {
  /** Accepts any object unseen. */
  readonly open: boolean;
  /** Properties by the length of their names, chained by `next`. Unnamed properties may be anything. */
  readonly byLength: readonly (Property | null)[];
  /** The bits of the required properties. */
  readonly required: number;
  /** Finds unnamed properties that could be read as a named one; null if ambiguity does not matter. */
  readonly guard: MemberGuard | null;
}

export interface Property {
  readonly name: Uint8Array;
  readonly node: AcceptNode;
  /** Its bit in `required`, or 0. */
  readonly bit: number;
  /** Position in `guardedKeys`, from 1, for a key whose span is recorded; or 0. They are at the top, except that of items. */
  readonly guard: number;
  /** Its bits among the properties that must not be repeated, in two numbers; or 0. */
  readonly low: number;
  readonly high: number;
  readonly next: Property | null;
}

/** Creates all nodes, so that they have one object shape, which keeps each step of the walk monomorphic. */
function nodeOf({
  anything = false,
  text = null,
  number = null,
  object = null,
  items = null,
  yes = false,
  no = false,
  nil = false,
}: Partial<AcceptNode>): AcceptNode {
  return { anything, text, number, object, items, yes, no, nil };
}

const nothing = nodeOf({});
const anything = nodeOf({ anything: true });

/** The bits of a small integer. */
const maxRequired = 30;
const smallBits = 30;

/** Names that are the same as bytes in a body: no escapes, no UTF-8. */
const plainText = /^[\x20-\x7e]*$/;

const supported = ['type', 'properties', 'required', 'items', 'minLength', 'minimum', 'maximum'];

/** What to look for in a body besides what its schema requires. */
interface BodyMarks {
  /** A key that the body must have, or null. */
  readonly own: string | null;
  /** Whether to mark the tools of items: `toolsMember` in the objects of the list in `itemsMember`. */
  readonly wantsItemTools: boolean;
  /** Finds ambiguous members of the body. */
  readonly guard: MemberGuard;
}

/**
 * Compiles the schema of a body.
 * @returns The rule of the body, or null for a schema or guard that cannot be compiled to one.
 */
export function compileBody(
  schema: SchemaNode,
  { own, wantsItemTools, guard }: BodyMarks,
): ObjectRule | null {
  if (isNoting(guard.spec)) return null;
  if (schema.type !== 'object' || !hasOnly(schema, supported)) return null;
  const rule = objectRule(
    own === null ? schema : { ...schema, required: [...(schema.required ?? []), own] },
    guardedKeys,
    guard,
  );
  if (rule === null || !wantsItemTools) return rule;
  const byLength = rule.byLength.map(withItemTools);
  return { ...rule, byLength };
}

/**
 * Returns the properties of one length, of which the list of items accepts the same and marks the tools of its items. Its
 * other values and items may be anything.
 */
function withItemTools(property: Property | null): Property | null {
  if (property === null) return null;
  const next = withItemTools(property.next);
  const isList = itemsMember === Buffer.from(property.name).toString('latin1');
  return { ...property, next, node: isList && property.node.anything ? markedList() : property.node };
}

function markedList(): AcceptNode {
  const marked = Array.from({ length: toolsMember.length + 1 }, (): Property | null => null);
  marked[toolsMember.length] = {
    name: Uint8Array.from(Buffer.from(toolsMember, 'latin1')),
    node: anything,
    ...{ bit: 0, guard: guards.itemTools, low: 0, high: 0, next: null },
  };
  const item: ObjectRule = { open: false, byLength: marked, required: 0, guard: null };
  return anyOr({ ...item, open: true, byLength: [] }, anyOr(item, anything));
}

/** Accepts any JSON, objects and lists by rules. */
function anyOr(object: ObjectRule | null, items: AcceptNode): AcceptNode {
  const { NEGATIVE_INFINITY: minimum, POSITIVE_INFINITY: maximum } = Number;
  const number = { integer: false, minimum, maximum };
  return nodeOf({ text: 'any', number, object, items, yes: true, no: true, nil: true });
}

/** Compiles a schema. An unsupported one becomes `nothing`, so that its values are left to the full check. */
function compileNode(schema: SchemaNode | boolean, guard: MemberGuard | null): AcceptNode {
  if (typeof schema === 'boolean') return schema ? anything : nothing;
  if (hasOnly(schema, [])) return anything;
  if (hasOnly(schema, ['anyOf']))
    return (schema.anyOf ?? []).map((branch) => compileNode(branch, guard)).reduce(either, nothing);
  return hasOnly(schema, supported) ? typeNode(schema, guard) : nothing;
}

function hasOnly(schema: SchemaNode, keywords: readonly string[]): boolean {
  return Object.keys(schema).every((keyword) => keywords.includes(keyword));
}

function typeNode(schema: SchemaNode, guard: MemberGuard | null): AcceptNode {
  switch (schema.type) {
    case 'string':
      return nodeOf({ text: textRule(schema) });
    case 'integer':
      return nodeOf({ number: integerRule(schema) });
    case 'boolean':
      return nodeOf({ yes: true, no: true });
    case 'null':
      return nodeOf({ nil: true });
    case 'object':
      return nodeOf({ object: objectRule(schema, [], guard) });
    case 'array':
      return nodeOf({ items: compileNode(schema.items ?? true, null) });
    default:
      return nothing;
  }
}

/** A length above one is counted in characters, and long strings are truncated here. */
function textRule({ minLength = 0 }: SchemaNode): AcceptNode['text'] {
  return minLength > 1 ? null : minLength === 1 ? 'filled' : 'any';
}

function integerRule(schema: SchemaNode): NumberRule {
  return {
    integer: true,
    minimum: schema.minimum ?? Number.NEGATIVE_INFINITY,
    maximum: schema.maximum ?? Number.POSITIVE_INFINITY,
  };
}

function isPlain(text: string): boolean {
  return plainText.test(text) && !/["\\]/.test(text);
}

function objectRule(
  schema: SchemaNode,
  guardedKeys: readonly string[],
  guard: MemberGuard | null,
): ObjectRule | null {
  const { properties = {}, required = [] } = schema;
  const read = guard?.spec.reads ?? [];
  const names = [...new Set([...Object.keys(properties), ...required, ...guardedKeys, ...read])];
  // Inherited names exist on every object without being sent. Required names need a bit each.
  if (!names.every((name) => isPlain(name) && !(name in Object.prototype))) return null;
  const bits = [...new Set(required)];
  if (bits.length > maxRequired) return null;
  const byLength = new Array<Property | null>(Math.max(0, ...names.map((name) => name.length)) + 1).fill(
    null,
  );
  // Backwards, so that names of equal length keep their order in the chain.
  for (const name of names.reverse()) {
    const own = properties[name];
    const entry = guard?.entryOf(name) ?? null;
    const index = entry?.index ?? -1;
    if (index >= 2 * smallBits) return null;
    byLength[name.length] = {
      name: Uint8Array.from(Buffer.from(name, 'latin1')),
      node: guardedNode(
        own === undefined ? anything : compileNode(own, entry?.within ?? null),
        entry?.within ?? null,
      ),
      bit: bits.includes(name) ? 1 << bits.indexOf(name) : 0,
      guard: guardedKeys.indexOf(name) + 1,
      low: index >= 0 && index < smallBits ? 1 << index : 0,
      high: index >= smallBits ? 1 << (index - smallBits) : 0,
      next: byLength[name.length] ?? null,
    };
  }
  return {
    open: guard === null && names.length === 0,
    byLength,
    required: 2 ** bits.length - 1,
    guard,
  };
}

/** Accepts any JSON, but an object only without ambiguous members. */
function guardedNode(node: AcceptNode, guard: MemberGuard | null): AcceptNode {
  return guard === null || !node.anything ? node : anyOr(objectRule({}, [], guard), anything);
}

/** Merges two nodes. If both have rules for a kind of value, what only the second accepts is left to the full check. */
function either(one: AcceptNode, other: AcceptNode): AcceptNode {
  return nodeOf({
    anything: one.anything || other.anything,
    text: one.text ?? other.text,
    number: one.number ?? other.number,
    object: one.object ?? other.object,
    items: one.items ?? other.items,
    yes: one.yes || other.yes,
    no: one.no || other.no,
    nil: one.nil || other.nil,
  });
}

/** Whether a guard notes further members, which the walk cannot: it notes the guarded keys only. */
function isNoting({ notes = [], within = {} }: GuardSpec): boolean {
  return notes.length > 0 || Object.values(within).some(isNoting);
}
