import type { TSchema } from 'typebox';
import { GatewayError } from '../errors.js';
import { isObject } from '../wire/json.js';
import { requireCheapBody } from '../wire/json-cost.js';
import { type BodySpans, scanBody } from '../wire/json-scan.js';
import { type GuardSpec, lookThrough, MemberGuard, noMembers } from '../wire/member-guard.js';
import { backgroundMember, goingOnMembers, routedMembers } from '../wire/routed-members.js';
import { parseBody } from '../wire/skeleton.js';
import { type Accepted, compileAcceptor, type OutputSpans } from './accept.js';
import { explain, requireExplainable } from './explain.js';
import { asSchema, keywords, type SchemaNode } from './node.js';
import { compileValidator } from './validator.js';

/** A check that is built once and run for every request. */
export interface CompiledSchema {
  /** Says yes to a body from its bytes alone, or does not know (null); then `check` decides on the parsed value. */
  accept(body: Buffer): Accepted | null;
  /** True when the value is of the schema and not one of another endpoint. */
  check(value: unknown): boolean;
  /** Why `check` said no. Slow; for a value that passed, the answer is a general refusal. */
  explain(value: unknown): GatewayError;
  /** What has to be clear among the members of a body; `accept` says yes only to one that it finds nothing in. */
  readonly guard: MemberGuard;
}

/**
 * The same check, which asks of a body that it has something besides.
 * @param checked says yes from bytes alone only to bodies that have it
 * @param refuse makes the error of a body that lacks nothing else
 */
export function requiring(
  checked: CompiledSchema,
  has: (body: unknown) => boolean,
  refuse: () => GatewayError,
): CompiledSchema {
  return {
    guard: checked.guard,
    accept: (body) => checked.accept(body),
    check: (value) => checked.check(value) && has(value),
    explain: (value) => (!checked.check(value) || has(value) ? checked.explain(value) : refuse()),
  };
}

/** Bodies of other endpoints that come to this one by mistake. */
export interface MixedBody {
  /** A body that has this key is taken for one of this endpoint, whatever else it has. */
  readonly own: string;
  /** Keys that tell where the body belongs; the first one present is named. */
  readonly foreign: readonly { readonly key: string; readonly endpoint: string }[];
}

/**
 * Compiles a TypeBox schema to a fast check with a readable refusal.
 * @param schema Request body of an endpoint. Where skeletons are checked (`parseBody`), it may ask of a string only
 * its type, that it is not empty, and equality with constants.
 * @param mixed The endpoint's table of keys that belong elsewhere, or null.
 * @param guarded What of the body has to be clear besides the members of the schema.
 * @returns A check without state, safe to share.
 */
export function compileSchema(
  schema: TSchema,
  mixed: MixedBody | null = null,
  guarded: Guarded = {},
): CompiledSchema {
  const guard = new MemberGuard(guardSpec(asSchema(schema), guarded));
  // Both are made when the first body comes that needs them: all together would take a good part of a worker's start.
  let acceptor: ReturnType<typeof compileAcceptor> | null = null;
  let validator: ReturnType<typeof compiled> | null = null;
  const strayIn = (value: unknown) => (mixed === null ? null : strayKey(mixed, value));
  return {
    guard,
    accept(body) {
      // A body that has the endpoint's own key is not taken for one of another.
      acceptor ??= compileAcceptor(schema, guard, mixed?.own ?? null);
      return acceptor(body);
    },
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

/** What of a body has to be clear besides the members that its schema knows. */
export interface Guarded {
  /** More members that are read. */
  readonly reads?: readonly string[];
  /** Objects whose members have to be clear, too, and what the schema does not know of those. */
  readonly within?: Readonly<Record<string, Partial<GuardSpec>>>;
}

/** The gateway reads what an endpoint's schema knows, and of every body what calls are routed and counted by. */
function guardSpec(schema: SchemaNode, { reads = [], within = {} }: Guarded): GuardSpec {
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

/** @throws {Error} for a schema keyword that `explain` cannot put into words */
function compiled(schema: TSchema): ReturnType<typeof compileValidator> {
  requireExplainable(schema);
  return compileValidator(withShared(asSchema(schema)));
}

function strayKey(mixed: MixedBody, value: unknown): MixedBody['foreign'][number] | null {
  if (typeof value !== 'object' || value === null || Object.hasOwn(value, mixed.own)) return null;
  return mixed.foreign.find(({ key }) => Object.hasOwn(value, key)) ?? null;
}

function belongsElsewhere(mixed: MixedBody, stray: MixedBody['foreign'][number]): GatewayError {
  return new GatewayError(
    'invalid_request_body',
    `This body looks like one for ${stray.endpoint}: it has '${stray.key}' and no '${mixed.own}'. ` +
      `Send it there, or send '${mixed.own}' here.`,
    { param: stray.key },
  );
}

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

/** What the later phases need to know of a request body that has passed its endpoint's schema. */
export interface ValidatedBody extends Omit<Accepted, 'output'> {
  /** Null where nobody has looked for it. */
  readonly output: OutputSpans | null;
}

/** A list of numbers takes so many bytes a value: that many are walked through in some milliseconds, whatever they are. */
const walkedPerValue = 2;

/**
 * Validates the body of a request that is passed through as it came.
 * @param body The whole body, decoded from any content coding. Not changed, not kept.
 * @param schema The endpoint's check.
 * @param mostValues `limits.bodyValues`
 * @returns What the later phases need to know of the body.
 * @throws {GatewayError} Of status 400, saying what is wrong and where.
 */
export function validateBody(body: Buffer, schema: CompiledSchema, mostValues: number): ValidatedBody {
  // What it costs to parse is a walk of its own, which as a rule is not worth its time: nearly no body is parsed.
  const isShort = body.length <= mostValues * walkedPerValue;
  if (!isShort) requireCheapBody(body, mostValues);
  const accepted = schema.accept(body);
  if (accepted !== null) return accepted;
  if (isShort) requireCheapBody(body, mostValues);
  return parseAndCheck(body, schema);
}

const noSpans: BodySpans = { open: 0, model: null, streamOptions: null, includeUsage: null };

/** What the later phases need to know of a form, or of another body that is not passed on as it came. */
export function readValidated(model: string, stream: boolean): ValidatedBody {
  return {
    scan: noSpans,
    model,
    stream,
    includeUsage: true,
    output: null,
    goesOn: false,
    inBackground: false,
    members: noMembers,
  };
}

/** The verdict on what `accept` does not know, and the reason of every refusal. */
function parseAndCheck(body: Buffer, schema: CompiledSchema): ValidatedBody {
  const scan = scanBody(body);
  const value = parseBody(body, scan);
  const members = lookThrough(body, schema.guard);
  if (!isObject(value) || !schema.check(value)) throw schema.explain(value);
  const { model, stream, stream_options: options } = value;
  const background = value[backgroundMember] ?? false;
  return {
    scan,
    model: typeof model === 'string' ? model : '',
    stream: stream === true,
    includeUsage: asksForUsage(options),
    output: null,
    goesOn: goingOnMembers.some((name) => (value[name] ?? null) !== null),
    inBackground: background !== false,
    members,
  };
}

function asksForUsage(options: unknown): boolean {
  return isObject(options) && options.include_usage === true;
}
