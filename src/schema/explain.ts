import { GatewayError } from '../errors.js';
import { describe, nameFound } from './describe.js';
import { asSchema, isType, keywords, type SchemaNode } from './node.js';

type Path = readonly (string | number)[];

/** Where a value and its schema part, in the union branch that the value was most likely meant for. */
interface Problem {
  readonly path: Path;
  readonly kind: 'missing_parameter' | 'invalid_value' | 'invalid_request';
  /** What was wanted there and what stood there; put into words only for the problem that is told. */
  readonly schema: SchemaNode | boolean;
  readonly value: unknown;
}

/** Members that say which branch of a union an object is meant for. */
const discriminators = ['role', 'type'];

/**
 * Puts into words why a value is not of a schema. It reads the schema itself rather than TypeBox's error list: the
 * list stops after eight entries, which one union of messages fills, and it does not say which branch was meant.
 * @param schema The schema that refused the value.
 * @param value The refused value. Only numbers, booleans and short strings in place of constants are quoted.
 * @returns An error whose `param` and message name the place as a caller writes it: `messages[2].content`.
 */
export function explain(schema: unknown, value: unknown): GatewayError {
  const problem = findProblem(asSchema(schema), value, []);
  if (problem === null) return new GatewayError('invalid_request');
  const param = writePath(problem.path);
  const expected = describe(wantedOf(problem));
  if (problem.kind === 'missing_parameter') {
    return new GatewayError(problem.kind, `Missing required parameter '${param}': expected ${expected}.`, {
      param,
    });
  }
  const what = problem.kind === 'invalid_value' ? 'Invalid value' : 'Invalid type';
  const where = param === '' ? 'the request body' : `'${param}'`;
  const found = nameFound(problem.value, problem.kind === 'invalid_value');
  return new GatewayError(problem.kind, `${what} for ${where}: expected ${expected}, found ${found}.`, {
    param: param === '' ? null : param,
  });
}

/** Where nothing stands yet, what it must not be is of no interest. */
function wantedOf({ kind, schema }: Problem): SchemaNode | boolean {
  return kind === 'missing_parameter' && typeof schema === 'object' ? { ...schema, not: undefined } : schema;
}

/**
 * Refuses a schema that `explain` could not speak for.
 * @param at Where the schema stands, for the message.
 * @throws {Error} Naming the first unknown keyword and its place.
 */
export function requireExplainable(schema: unknown, at = '#'): void {
  if (typeof schema === 'boolean') return;
  for (const [keyword, value] of Object.entries(asSchema(schema))) {
    const form = Object.hasOwn(keywords, keyword) ? keywords[keyword] : undefined;
    const place = `${at}/${keyword}`;
    if (form === undefined) throw new Error(`The schema keyword at ${place} has no explanation.`);
    if (form === 'schema') requireExplainable(value, place);
    if (form !== 'schemas') continue;
    for (const [name, child] of Object.entries(value as object))
      requireExplainable(child, `${place}/${name}`);
  }
}

/** The first problem in the order of the schema, or null: the same verdict as TypeBox's check. */
function findProblem(schema: SchemaNode | boolean, value: unknown, path: Path): Problem | null {
  if (typeof schema === 'boolean') return schema ? null : { path, kind: 'invalid_value', schema, value };
  const own = ownProblem(schema, value);
  if (own !== null) return { path, kind: own, schema, value };
  if (schema.not !== undefined && findProblem(schema.not, value, path) === null) {
    return { path, kind: 'invalid_value', schema, value };
  }
  const inner = findInnerProblem(schema, value, path);
  if (inner !== null) return inner;
  for (const part of schema.allOf ?? []) {
    const problem = findProblem(part, value, path);
    if (problem !== null) return problem;
  }
  return schema.anyOf === undefined ? null : findUnionProblem(schema, schema.anyOf, value, path);
}

/** What is wrong with the value itself, its members and items aside. */
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
    return (
      value < (schema.minimum ?? Number.NEGATIVE_INFINITY) ||
      value > (schema.maximum ?? Number.POSITIVE_INFINITY) ||
      value <= (schema.exclusiveMinimum ?? Number.NEGATIVE_INFINITY) ||
      value >= (schema.exclusiveMaximum ?? Number.POSITIVE_INFINITY)
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
 * Of a union, the branch whose `role` or `type` is the value's speaks. Without one, the branch that got deepest into
 * the value does, the last among equals, which is the general one by custom. When no branch got past the value
 * itself, the union speaks for all of them.
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

/** How likely a branch was meant: by its discriminator, by depth, by a type that fits (1), or not at all (0). */
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
    else text += `[${JSON.stringify(step.length <= longestName ? step : `${step.slice(0, longestName)}…`)}]`;
  }
  return text;
}
