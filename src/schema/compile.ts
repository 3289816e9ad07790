import type { TSchema } from 'typebox';
import type { GatewayError } from '../errors.js';
import { memberError } from '../wire/json.js';
import { type GuardSpec, MemberGuard } from '../wire/member-guard.js';
import { routedMembers } from '../wire/routed-members.js';
import { acceptorOf, type CompiledSchema } from './accept.js';
import { explain, requireExplainable } from './explain.js';
import { asSchema, keywords, type SchemaNode } from './node.js';
import { compileValidator } from './validator.js';

/**
 * Adds a requirement to a check.
 * @param checked its `accept` accepts only bodies that meet the requirement
 * @param refuse creates the error for a body that is otherwise valid
 */
export function requiring(
  checked: CompiledSchema,
  has: (body: unknown) => boolean,
  refuse: () => GatewayError,
): CompiledSchema {
  return {
    guard: checked.guard,
    accept: checked.accept,
    wantsItemTools: checked.wantsItemTools,
    check: (value) => checked.check(value) && has(value),
    explain: (value) => (!checked.check(value) || has(value) ? checked.explain(value) : refuse()),
  };
}

/** Detects bodies of other endpoints sent to this one by mistake. */
export interface MixedBody {
  /** A body with this key is treated as one of this endpoint, whatever else it has. */
  readonly own: string;
  /** Keys that identify the right endpoint; the first one present is reported. */
  readonly foreign: readonly { readonly key: string; readonly endpoint: string }[];
}

/**
 * Compiles a TypeBox schema to a fast check with a readable refusal.
 * @param schema Request body of an endpoint. If skeletons are checked (`parseBody`), it may constrain strings only by
 * type, by being non-empty, and by equality with constants.
 * @param mixed The endpoint's table of keys that belong elsewhere, or null.
 * @param guarded Members that must be unambiguous besides those of the schema.
 * @returns A check without state, safe to share.
 */
export function compileSchema(
  schema: TSchema,
  mixed: MixedBody | null = null,
  { wantsItemTools = false, ...guarded }: Guarded = {},
): CompiledSchema {
  const guard = new MemberGuard(guardSpec(asSchema(schema), guarded));
  // Compiled at the first body that needs it: all of them would take a good part of a worker's start.
  let validator: ReturnType<typeof compiled> | null = null;
  const strayIn = (value: unknown) => (mixed === null ? null : strayKey(mixed, value));
  return {
    guard,
    // A body with the endpoint's own key is not treated as one of another endpoint.
    accept: acceptorOf(schema, guard, mixed?.own ?? null, wantsItemTools),
    wantsItemTools,
    check(value) {
      validator ??= compiled(schema);
      return validator.Check(value) && strayIn(value) === null;
    },
    explain(value) {
      const stray = strayIn(value);
      return mixed === null || stray === null ? explain(schema, value) : belongsElsewhere(mixed, stray);
    },
  };
}

/** Members that must be unambiguous besides those of the schema. */
export interface Guarded {
  /** Further members that are read. */
  readonly reads?: readonly string[];
  /** Objects whose members must also be unambiguous, with members that the schema does not have. */
  readonly within?: Readonly<Record<string, Partial<GuardSpec>>>;
  readonly echoes?: GuardSpec['echoes'];
  readonly bars?: GuardSpec['bars'];
  /** Whether the tools that items of the input bring are looked for. */
  readonly wantsItemTools?: boolean;
}

/**
 * The members that the gateway reads: those of the endpoint's schema, and those by which any call is routed and
 * counted.
 */
function guardSpec(
  schema: SchemaNode,
  { reads = [], within = {}, echoes = {}, bars = [] }: Guarded,
): GuardSpec {
  const inner: Readonly<Record<string, Partial<GuardSpec>>> = {
    stream_options: { reads: ['include_usage'] },
    ...within,
  };
  return {
    reads: [...new Set([...propertyNames(schema), ...routedMembers, ...reads])],
    within: Object.fromEntries(
      Object.entries(inner).map(([name, more]) => {
        const known = propertiesOf(schema).flatMap((properties) => propertyNames(properties[name] ?? true));
        return [name, { ...more, reads: [...new Set([...known, ...(more.reads ?? [])])] }];
      }),
    ),
    echoes,
    bars,
    steers: true,
  };
}

function propertiesOf(schema: SchemaNode | boolean): Readonly<Record<string, SchemaNode | boolean>>[] {
  if (typeof schema === 'boolean') return [];
  return [
    ...(schema.properties === undefined ? [] : [schema.properties]),
    ...(schema.anyOf ?? []).flatMap(propertiesOf),
  ];
}

function propertyNames(schema: SchemaNode | boolean): string[] {
  return propertiesOf(schema).flatMap((properties) => Object.keys(properties));
}

/** @throws {Error} for a schema keyword that `explain` does not support */
function compiled(schema: TSchema): ReturnType<typeof compileValidator> {
  requireExplainable(schema);
  return compileValidator(withShared(asSchema(schema)));
}

function strayKey(mixed: MixedBody, value: unknown): MixedBody['foreign'][number] | null {
  if (typeof value !== 'object' || value === null || Object.hasOwn(value, mixed.own)) return null;
  return mixed.foreign.find(({ key }) => Object.hasOwn(value, key)) ?? null;
}

function belongsElsewhere(mixed: MixedBody, stray: MixedBody['foreign'][number]): GatewayError {
  return memberError(
    'invalid_request_body',
    stray.key,
    `This body looks like one for ${stray.endpoint}: it has '${stray.key}' and no '${mixed.own}'. ` +
      `Send it there, or send '${mixed.own}' here.`,
  );
}

/** A schema with references to shared subschemas (JSON Schema 2020-12, section 8.2.3.1). */
interface SharedSchema {
  readonly $defs: Readonly<Record<string, unknown>>;
}

/**
 * The same schema, with objects that occur several times defined once. Its check is then compiled to several functions.
 * As a single expression with every occurrence inlined, the check of a generateContent request exceeds what V8
 * optimizes, and takes 20 times as long.
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
