import { GatewayError, shortened } from '../errors.js';
import { memberError } from '../wire/json.js';
import { asSchema, isType, keywords, type SchemaNode } from './node.js';

type Path = readonly (string | number)[];

/** The place where a value violates its schema, in the union branch that it was most likely meant for. */
interface Problem {
  readonly path: Path;
  readonly kind: 'missing_parameter' | 'invalid_value' | 'invalid_request';
  /** The schema and the value at that place; described only for the problem that is reported. */
  readonly schema: SchemaNode | boolean;
  readonly value: unknown;
}

/** Members that select the branch of a union. */
const discriminators = ['role', 'type'];

/**
 * Explains why a value violates a schema. It reads the schema itself rather than TypeBox's error list: the list stops
 * after eight entries, which one union of messages fills, and does not show which branch was meant.
 * @param schema The schema that refused the value.
 * @param value The refused value. Only numbers, booleans and short strings in place of constants are quoted.
 * @returns An error whose `param` and message name the place in the caller's notation: `messages[2].content`.
 */
export function explain(schema: unknown, value: unknown): GatewayError {
  const problem = findProblem(asSchema(schema), value, []);
  if (problem === null) return new GatewayError('invalid_request');
  const param = writePath(problem.path);
  const wanted = wantedOf(problem);
  const expected = describe(wanted);
  if (problem.kind === 'missing_parameter') {
    const more = asksNothing(wanted) ? '' : `: expected ${expected}`;
    return memberError(problem.kind, param, `Missing required parameter '${param}'${more}.`);
  }
  const what = problem.kind === 'invalid_value' ? 'Invalid value' : 'Invalid type';
  const where = param === '' ? 'the request body' : `'${param}'`;
  const found = nameFound(problem.value, problem.kind === 'invalid_value');
  return new GatewayError(problem.kind, `${what} for ${where}: expected ${expected}, found ${found}.`, {
    param: param === '' ? null : param,
  });
}

/** Whether a schema accepts any value. */
function asksNothing(schema: SchemaNode | boolean): boolean {
  return schema === true || (typeof schema === 'object' && Object.keys(schema).every((key) => key === 'not'));
}

/** The schema to describe: for a missing member without its `not`, which would only confuse. */
function wantedOf({ kind, schema }: Problem): SchemaNode | boolean {
  return kind === 'missing_parameter' && typeof schema === 'object' ? { ...schema, not: undefined } : schema;
}

/**
 * Refuses a schema that `explain` does not support.
 * @param at The schema's place, for the message.
 * @throws {Error} Naming the first unknown keyword and its place.
 */
export function requireExplainable(schema: unknown, at = '#'): void {
  if (typeof schema === 'boolean') return;
  for (const [keyword, value] of Object.entries(asSchema(schema))) {
    const form = Object.hasOwn(keywords, keyword) ? keywords[keyword] : undefined;
    const path = `${at}/${keyword}`;
    if (form === undefined) throw new Error(`The schema keyword at ${path} has no explanation.`);
    if (form === 'schema') requireExplainable(value, path);
    if (form !== 'schemas') continue;
    for (const [name, child] of Object.entries(value as object)) requireExplainable(child, `${path}/${name}`);
  }
}

/** Finds the first problem in the order of the schema, or returns null. The verdict is the same as of TypeBox's check. */
function findProblem(schema: SchemaNode | boolean, value: unknown, path: Path): Problem | null {
  if (typeof schema === 'boolean') return schema ? null : { path, kind: 'invalid_value', schema, value };
  const own = ownProblem(schema, value);
  if (own !== null) return { path, kind: own, schema, value };
  if (schema.not !== undefined && findProblem(schema.not, value, path) === null) {
    return { path, kind: 'invalid_value', schema, value };
  }
  const inner = findInnerProblem(schema, value, path);
  if (inner !== null || schema.anyOf === undefined) return inner;
  return findUnionProblem(schema, schema.anyOf, value, path);
}

/** The problem of the value itself, without its members and items. */
function ownProblem(schema: SchemaNode, value: unknown): Problem['kind'] | null {
  if (schema.type !== undefined && !isType(schema.type, value)) return 'invalid_request';
  const constants = 'const' in schema ? [schema.const] : schema.enum;
  if (constants !== undefined && !constants.includes(value)) {
    return constants.some((constant) => typeof constant === typeof value)
      ? 'invalid_value'
      : 'invalid_request';
  }
  return outOfBounds(schema, value) ? 'invalid_value' : null;
}

function outOfBounds(schema: SchemaNode, value: unknown): boolean {
  if (typeof value === 'number') {
    // A number beyond a double, such as 1e999. What accepts anything accepts it, too.
    if (!Number.isFinite(value)) return schema.type !== undefined || schema.anyOf !== undefined;
    return (
      value < (schema.minimum ?? Number.NEGATIVE_INFINITY) ||
      value > (schema.maximum ?? Number.POSITIVE_INFINITY)
    );
  }
  if (typeof value === 'string') return value.length < (schema.minLength ?? 0);
  if (Array.isArray(value)) {
    return value.length < (schema.minItems ?? 0) || value.length > (schema.maxItems ?? value.length);
  }
  if (schema.maxProperties === undefined || typeof value !== 'object' || value === null) return false;
  return Object.keys(value).length > schema.maxProperties;
}

function findInnerProblem(schema: SchemaNode, value: unknown, path: Path): Problem | null {
  if (typeof value !== 'object' || value === null) return null;
  if (!Array.isArray(value)) return findMemberProblem(schema, value as Record<string, unknown>, path);
  if (schema.items === undefined) return null;
  for (const [index, item] of value.entries()) {
    const problem = findProblem(schema.items, item, [...path, index]);
    if (problem !== null) return problem;
  }
  return null;
}

function findMemberProblem(schema: SchemaNode, value: Record<string, unknown>, path: Path): Problem | null {
  const properties = schema.properties ?? {};
  for (const name of schema.required ?? []) {
    if (Object.hasOwn(value, name)) continue;
    return {
      path: [...path, name],
      kind: 'missing_parameter',
      schema: properties[name] ?? true,
      value: undefined,
    };
  }
  for (const name of Object.keys(properties)) {
    if (!Object.hasOwn(value, name)) continue;
    const problem = findProblem(properties[name] ?? true, value[name], [...path, name]);
    if (problem !== null) return problem;
  }
  if (schema.additionalProperties === undefined) return null;
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(properties, name)) continue;
    const problem = findProblem(schema.additionalProperties, value[name], [...path, name]);
    if (problem !== null) return problem;
  }
  return null;
}

/**
 * Selects the problem to report for a union: that of the branch whose `role` or `type` is the value's. Without one,
 * that of the branch which got deepest into the value, the last among equals, which by convention is the general one.
 * If no branch got past the value itself, that of the union.
 */
function findUnionProblem(
  schema: SchemaNode,
  branches: readonly SchemaNode[],
  value: unknown,
  path: Path,
): Problem | null {
  let chosen: Problem | null = null;
  let chosenRank = 0;
  let equals = 0;
  for (const branch of branches) {
    const problem = findProblem(branch, value, path);
    if (problem === null) return null;
    const rank = rankOf(branch, value, problem, path);
    if (rank < chosenRank) continue;
    equals = rank === chosenRank ? equals + 1 : 1;
    chosen = problem;
    chosenRank = rank;
  }
  if (chosenRank > 1 || (chosenRank === 1 && equals === 1)) return chosen;
  return { path, kind: chosenRank === 1 ? 'invalid_value' : 'invalid_request', schema, value };
}

/** Ranks how likely a branch was meant: by its discriminator, by depth, by a matching type (1), or not at all (0). */
function rankOf(branch: SchemaNode, value: unknown, problem: Problem, path: Path): number {
  const match = matchOf(branch, value);
  if (match === 'this') return Number.MAX_SAFE_INTEGER;
  if (match === 'other') return 0;
  const depth = problem.path.length - path.length;
  if (depth > 0) return depth + 1;
  return problem.kind === 'invalid_value' ? 1 : 0;
}

function matchOf(branch: SchemaNode, value: unknown): 'this' | 'other' | 'unknown' {
  if (typeof value !== 'object' || value === null) return 'unknown';
  for (const name of discriminators) {
    const member = branch.properties?.[name];
    if (typeof member !== 'object' || !Object.hasOwn(value, name)) continue;
    const constants = 'const' in member ? [member.const] : member.enum;
    if (constants === undefined) continue;
    return constants.includes((value as Record<string, unknown>)[name]) ? 'this' : 'other';
  }
  return 'unknown';
}

const plainName = /^[A-Za-z_$][\w$-]*$/;
const longestName = 64;

function writePath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (plainName.test(step) && step.length <= longestName) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(shortened(step, longestName))}]`;
  }
  return text;
}

/**
 * Describes a schema in a few words: `a number between 0 and 2`, `a string, an array or null`.
 * @returns Words that fit after "expected".
 */
function describe(schema: SchemaNode | boolean): string {
  if (schema === true) return 'any value';
  if (schema === false) return 'nothing';
  if (schema.anyOf !== undefined) {
    return either([...new Set(alternatives(schema.anyOf))]);
  }
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return either(quoted(schema.enum));
  if (schema.type === undefined) return 'another value';
  if (schema.not?.enum !== undefined) return `a ${schema.type} other than ${either(quoted(schema.not.enum))}`;
  return describeType(schema.type, schema);
}

/**
 * Describes a value: by its type, or for numbers, booleans and, if `quote` is set, short strings, by the value itself.
 * @param value A parsed JSON value.
 * @param quote Whether the value of a string matters, as with constants. Long strings are never quoted.
 * @returns Words that fit after "found".
 */
function nameFound(value: unknown, quote: boolean): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${count(value)}`;
  switch (typeof value) {
    case 'string':
      if (value === '') return 'an empty string';
      return quote && value.length <= 40 ? JSON.stringify(value) : 'a string';
    case 'number':
      if (!Number.isFinite(value)) return 'a number out of range';
      return quote ? String(value) : 'a number';
    case 'boolean':
      return String(value);
    default:
      return 'an object';
  }
}

function quoted(values: readonly unknown[]): string[] {
  return values.map((value) => JSON.stringify(value));
}

function count(items: readonly unknown[]): string {
  return items.length === 1 ? '1 item' : `${items.length} items`;
}

/** Describes every branch; in such a list the length of an array would only confuse. */
function alternatives(branches: readonly SchemaNode[]): string[] {
  return branches.flatMap((branch) => {
    if (branch.anyOf !== undefined) return alternatives(branch.anyOf);
    return [branch.type === 'array' ? 'an array' : describe(branch)];
  });
}

function describeType(type: string, schema: SchemaNode): string {
  switch (type) {
    case 'integer':
      return `an integer${range(schema)}`;
    case 'number':
      return `a number${range(schema)}`;
    case 'string':
      return schema.minLength === undefined ? 'a string' : 'a non-empty string';
    case 'array':
      return `an array${items(schema)}`;
    case 'object':
      return schema.maxProperties === undefined
        ? 'an object'
        : `an object of at most ${schema.maxProperties} member${schema.maxProperties === 1 ? '' : 's'}`;
    case 'null':
      return 'null';
    default:
      return `a ${type}`;
  }
}

function range({ minimum, maximum }: SchemaNode): string {
  if (minimum !== undefined && maximum !== undefined) return ` between ${minimum} and ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? '' : ` of at most ${maximum}`;
}

function items(schema: SchemaNode): string {
  const least = schema.minItems;
  const most = schema.maxItems;
  if (least !== undefined && most !== undefined) return ` of ${least} to ${most} items`;
  if (least !== undefined) return ` of at least ${least} item${least === 1 ? '' : 's'}`;
  if (most !== undefined) return ` of at most ${most} item${most === 1 ? '' : 's'}`;
  return '';
}

function either(words: readonly string[]): string {
  const last = words[words.length - 1] ?? 'nothing';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`;
}
