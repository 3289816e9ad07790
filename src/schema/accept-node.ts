import type { GuardSpec, MemberGuard } from '../wire/member-guard.js';
import {
  backgroundMember,
  continuationMembers,
  itemsMember,
  outputMembers,
  toolsMember,
} from '../wire/routed-members.js';
import { isType, type SchemaNode } from './node.js';

/*
 * A schema in the form that the acceptor walks: the rules for each kind of JSON value, one field per kind, so that the
 * first byte of a value selects its rule. Every object of a kind has all its fields from the start, in one order.
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
  readonly text: TextRule | null;
  readonly number: NumberRule | null;
  /** Never empty. Tried in order; the first match wins. */
  readonly objects: readonly ObjectRule[] | null;
  readonly arrays: readonly ArrayRule[] | null;
  readonly yes: boolean;
  readonly no: boolean;
  readonly nil: boolean;
}

export interface TextRule {
  readonly nonEmpty: boolean;
  /** Null for any text. */
  readonly constants: readonly Uint8Array[] | null;
  /** Whether the text must not be one of the constants. */
  readonly excluded: boolean;
}

export interface NumberRule {
  readonly integer: boolean;
  readonly minimum: number;
  readonly maximum: number;
  readonly above: number;
  readonly below: number;
}

export interface ArrayRule {
  readonly items: AcceptNode;
  readonly least: number;
  readonly most: number;
}

export interface ObjectRule {
  /** Accepts any object unseen. */
  readonly open: boolean;
  /** Properties by the length of their names, chained by `next`. */
  readonly byLength: readonly (Property | null)[];
  /** The bits of the required properties. */
  readonly required: number;
  readonly most: number;
  /** The rules for unnamed properties; null if there may be none. */
  readonly rest: AcceptNode | null;
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
  objects = null,
  arrays = null,
  yes = false,
  no = false,
  nil = false,
}: Partial<AcceptNode>): AcceptNode {
  return { anything, text, number, objects, arrays, yes, no, nil };
}

const nothing = nodeOf({});
const anything = nodeOf({ anything: true });

/** The bits of a small integer. */
const maxRequired = 30;
const smallBits = 30;

/** Names and constants that are the same as bytes in a body: no escapes, no UTF-8. */
const plainText = /^[\x20-\x7e]*$/;

const annotations = ['title', 'description'];
const ofConstants = ['type', 'const', 'enum'];
const ofTypes = [
  'type',
  'not',
  'properties',
  'required',
  'additionalProperties',
  'maxProperties',
  'items',
  'minItems',
  'maxItems',
  'minLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
];

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
  if (schema.type !== 'object' || !hasOnly(schema, ofTypes) || schema.not !== undefined) return null;
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
  const item: ObjectRule = {
    ...{ open: false, byLength: marked, required: 0, most: Number.MAX_SAFE_INTEGER },
    ...{ rest: anything, guard: null },
  };
  const items = anyOr([item], [arrayRule({})]);
  const open: ObjectRule = { ...item, open: true, byLength: [] };
  return anyOr([open], [{ items, least: 0, most: Number.MAX_SAFE_INTEGER }]);
}

/** Accepts any JSON, objects and lists by rules. */
function anyOr(objects: readonly ObjectRule[] | null, arrays: readonly ArrayRule[]): AcceptNode {
  return nodeOf({
    text: textRule({}),
    number: numberRule({}, false),
    objects,
    arrays,
    yes: true,
    no: true,
    nil: true,
  });
}

/** Compiles a schema. An unsupported one becomes `nothing`, so that its values are left to the full check. */
function compileNode(schema: SchemaNode | boolean, guard: MemberGuard | null): AcceptNode {
  if (typeof schema === 'boolean') return schema ? anything : nothing;
  if (hasOnly(schema, [])) return anything;
  if (hasOnly(schema, ['anyOf']))
    return (schema.anyOf ?? []).map((branch) => compileNode(branch, guard)).reduce(either, nothing);
  if (hasOnly(schema, ofConstants)) {
    if ('const' in schema) return 'enum' in schema ? nothing : constantNode(schema, [schema.const]);
    if (schema.enum !== undefined) return constantNode(schema, schema.enum);
  }
  if (!hasOnly(schema, ofTypes) || schema.type === undefined) return nothing;
  const types = typeof schema.type === 'string' ? [schema.type] : schema.type;
  if (schema.not !== undefined && schema.type !== 'string') return nothing;
  return types.map((type) => typeNode(type, schema, guard)).reduce(either, nothing);
}

function hasOnly(schema: SchemaNode, keywords: readonly string[]): boolean {
  return Object.keys(schema).every((keyword) => keywords.includes(keyword) || annotations.includes(keyword));
}

function constantNode({ type }: SchemaNode, values: readonly unknown[]): AcceptNode {
  const possible = type === undefined ? values : values.filter((value) => isType(type, value));
  const constants = bytesOf(possible.filter((value) => typeof value === 'string'));
  return nodeOf({
    text: constants.length === 0 ? null : { nonEmpty: false, constants, excluded: false },
    yes: possible.includes(true),
    no: possible.includes(false),
    nil: possible.includes(null),
  });
}

function typeNode(type: string, schema: SchemaNode, guard: MemberGuard | null): AcceptNode {
  switch (type) {
    case 'string': {
      const text = textRule(schema);
      return nodeOf({ text });
    }
    case 'number':
    case 'integer':
      return nodeOf({ number: numberRule(schema, type === 'integer') });
    case 'boolean':
      return nodeOf({ yes: true, no: true });
    case 'null':
      return nodeOf({ nil: true });
    case 'object': {
      const rule = objectRule(schema, [], guard);
      return rule === null ? nothing : nodeOf({ objects: [rule] });
    }
    case 'array':
      return nodeOf({ arrays: [arrayRule(schema)] });
    default:
      return nothing;
  }
}

function textRule({ minLength = 0, not }: SchemaNode): TextRule | null {
  // A length above one is counted in characters, and long strings are truncated here.
  if (minLength > 1) return null;
  if (not === undefined) return { nonEmpty: minLength === 1, constants: null, excluded: false };
  if (Object.keys(not).length !== 1 || not.enum === undefined) return null;
  // All constants must be supported: one left out would be accepted.
  const constants = bytesOf(not.enum);
  return constants.length === not.enum.length
    ? { nonEmpty: minLength === 1, constants, excluded: true }
    : null;
}

function bytesOf(constants: readonly unknown[]): Uint8Array[] {
  return constants
    .filter((constant): constant is string => typeof constant === 'string' && isPlain(constant))
    .map((constant) => Uint8Array.from(Buffer.from(constant, 'latin1')));
}

function isPlain(text: string): boolean {
  return plainText.test(text) && !/["\\]/.test(text);
}

function numberRule(schema: SchemaNode, integer: boolean): NumberRule {
  return {
    integer,
    minimum: schema.minimum ?? Number.NEGATIVE_INFINITY,
    maximum: schema.maximum ?? Number.POSITIVE_INFINITY,
    above: schema.exclusiveMinimum ?? Number.NEGATIVE_INFINITY,
    below: schema.exclusiveMaximum ?? Number.POSITIVE_INFINITY,
  };
}

function arrayRule({ items = true, minItems, maxItems }: SchemaNode): ArrayRule {
  return {
    items: compileNode(items, null),
    least: minItems ?? 0,
    most: maxItems ?? Number.MAX_SAFE_INTEGER,
  };
}

function objectRule(
  schema: SchemaNode,
  guardedKeys: readonly string[],
  guard: MemberGuard | null,
): ObjectRule | null {
  const { properties = {}, required = [], additionalProperties = true, maxProperties } = schema;
  const rest = additionalProperties === false ? null : compileNode(additionalProperties, null);
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
        own === undefined ? (rest ?? nothing) : compileNode(own, entry?.within ?? null),
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
    open: guard === null && names.length === 0 && rest === anything && maxProperties === undefined,
    byLength,
    required: 2 ** bits.length - 1,
    most: maxProperties ?? Number.MAX_SAFE_INTEGER,
    rest,
    guard,
  };
}

/** Accepts any JSON, but an object only without ambiguous members. */
function guardedNode(node: AcceptNode, guard: MemberGuard | null): AcceptNode {
  if (guard === null || !node.anything) return node;
  const rule = objectRule({}, [], guard);
  return anyOr(rule === null ? null : [rule], [arrayRule({})]);
}

/**
 * Merges two nodes. If two rules for strings or numbers cannot be merged, values of the second are left to the full
 * check.
 */
function either(one: AcceptNode, other: AcceptNode): AcceptNode {
  return nodeOf({
    anything: one.anything || other.anything,
    text: eitherText(one.text, other.text),
    number: one.number ?? other.number,
    objects: joined(one.objects, other.objects),
    arrays: joined(one.arrays, other.arrays),
    yes: one.yes || other.yes,
    no: one.no || other.no,
    nil: one.nil || other.nil,
  });
}

function joined<T>(some: readonly T[] | null, more: readonly T[] | null): readonly T[] | null {
  return some === null || more === null ? (some ?? more) : [...some, ...more];
}

function eitherText(one: TextRule | null, other: TextRule | null): TextRule | null {
  if (one === null || other === null) return one ?? other;
  if (one.constants === null || one.excluded) return one;
  if (other.constants === null || other.excluded) return other;
  return { nonEmpty: false, constants: [...one.constants, ...other.constants], excluded: false };
}

/** Whether a guard notes further members, which the walk cannot: it notes the guarded keys only. */
function isNoting({ notes = [], within = {} }: GuardSpec): boolean {
  return notes.length > 0 || Object.values(within).some(isNoting);
}
