import type { TextProtocolName } from '../../../src/conversation/request.js';
import { isObject, type JsonObject } from '../../../src/wire/json.js';

export interface AskedTool {
  readonly name: string;
  /** It takes free text instead of JSON. */
  readonly custom: boolean;
  /** The namespace that a responses client put it in. */
  readonly namespace: string | undefined;
  /** Of its arguments, or undefined. */
  readonly schema?: unknown;
}

export interface AskedTurn {
  readonly role: 'user' | 'model';
  readonly texts: string[];
  images: number;
  /** Ids of tool calls. */
  readonly calls: string[];
  /** Tool results. */
  readonly results: string[];
}

/** A request that follows its vendor's rules, independent of its protocol. */
export interface Asked {
  readonly wire: TextProtocolName;
  readonly model: string;
  readonly stream: boolean;
  readonly tools: readonly AskedTool[];
  /** The name of the tool that must be called, true where it may be any, false where none must. */
  readonly forced: string | boolean;
  readonly turns: readonly AskedTurn[];
  /** Whether it enabled reasoning, which some models do by default. */
  readonly thinks: boolean;
  /** Whether the text of the reasoning is shown. */
  readonly shows: boolean;
  /** The schema that the answer must match, or undefined. */
  readonly schema: unknown;
  /** A chat stream was asked for its usage, or responses for encrypted reasoning. */
  readonly includes: boolean;
}

/** A vendor's error for a request that breaks its rules: 400 with this message, or another status and code. */
export class BrokenRule extends Error {
  constructor(
    message: string,
    readonly status = 400,
    readonly code?: string,
  ) {
    super(message);
  }
}

/** @throws BrokenRule unless the rule holds */
export function rule(holds: boolean, words: string): asserts holds {
  if (!holds) throw new BrokenRule(words);
}

/** @throws BrokenRule for a member that the vendor does not know */
export function onlyMembers(value: JsonObject, known: string, path: string): void {
  const names = known.split(' ');
  for (const name of Object.keys(value)) rule(names.includes(name), `${path}${name}: unknown member`);
}

/** @throws BrokenRule for anything but an array of objects */
export function objectsOf(value: unknown, path: string): readonly JsonObject[] {
  rule(Array.isArray(value), `${path}: not an array`);
  for (const each of value) rule(isObject(each), `${path}: an element is not an object`);
  return value as JsonObject[];
}

/** @throws BrokenRule for anything but an object */
export function objectOf(value: unknown, path: string): JsonObject {
  rule(isObject(value), `${path}: not an object`);
  return value;
}

/** @throws BrokenRule for anything but a string, and for one that is empty or too long */
export function textOf(value: unknown, path: string, most = Number.POSITIVE_INFINITY): string {
  rule(typeof value === 'string' && value !== '', `${path}: not a text with characters`);
  rule(value.length <= most, `${path}: longer than ${most} characters`);
  return value;
}

/** @throws BrokenRule for a given value that is none of these words */
export function oneOf(value: unknown, words: string, path: string): void {
  if (value === undefined || value === null) return;
  rule(typeof value === 'string' && words.split(' ').includes(value), `${path}: not one of ${words}`);
}

/** Returns a turn without content. */
export function newTurn(role: AskedTurn['role']): AskedTurn {
  return { role, texts: [], images: 0, calls: [], results: [] };
}

/** Checks that names of tools are unique and consist of allowed characters. @throws BrokenRule */
export function checkNames(names: readonly string[], pattern: RegExp, path: string): void {
  for (const name of names) rule(pattern.test(name), `${path}: '${name}' does not match ${pattern}`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  rule(twice === undefined, `${path}: '${twice}' is declared twice`);
}

/** Keywords that vendors' errors about a schema's root name (their issues are listed in `schema-rules.ts`). */
const refusedRoots = {
  openai: 'oneOf anyOf allOf enum const not',
  anthropic: 'oneOf allOf anyOf',
  google: 'oneOf allOf anyOf',
};
/** JSON Schema keywords that neither of the two vendors with strict tools accepts in one. */
const composition =
  'oneOf allOf not if then else dependentRequired dependentSchemas patternProperties uniqueItems';
const boundaries =
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems';

/**
 * Checks the schema of a function by each vendor's rules: an object, whose root is not a choice.
 * @throws BrokenRule
 */
export function checkSchema(schema: unknown, vendor: keyof typeof refusedRoots, path: string): JsonObject {
  const root = objectOf(schema, path);
  rule(root.type === 'object', `${path}: its type is not 'object'`);
  for (const word of refusedRoots[vendor].split(' '))
    rule(root[word] === undefined, `${path}: '${word}' at the root`);
  return root;
}

/**
 * Checks the schema of a strict function of OpenAI's: every member is required, and none may be added.
 * @throws BrokenRule
 */
export function checkOpenAiStrict(schema: JsonObject, path: string): void {
  for (const each of schemasIn(schema)) {
    refuseWords(each, composition, path);
    const isTyped = ['type', '$ref', 'anyOf', 'enum', 'const'].some((word) => each[word] !== undefined);
    rule(isTyped, `${path}: a schema must have a 'type' key`);
    for (const name of namesIn(each).all)
      rule(namesIn(each).required.has(name), `${path}: 'required' has to include every key, not '${name}'`);
  }
  checkClosed(schema, path);
}

/**
 * Checks the schemas of the strict tools of a request to Anthropic
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations").
 * @throws BrokenRule
 */
export function checkAnthropicStrict(schemas: readonly JsonObject[], path: string): void {
  rule(schemas.length <= 20, `${path}: more than 20 strict tools`);
  const all = schemas.flatMap(schemasIn);
  for (const each of all) {
    refuseWords(each, `${composition} ${boundaries}`, path);
    rule(typeof each.minItems !== 'number' || each.minItems <= 1, `${path}: 'minItems' other than 0 or 1`);
  }
  for (const schema of schemas) {
    checkClosed(schema, path);
    const text = JSON.stringify(schema);
    rule(!text.includes('"$ref":"#"'), `${path}: recursive schemas are not supported`);
  }
  const optional = all.flatMap((each) =>
    namesIn(each).all.filter((name) => !namesIn(each).required.has(name)),
  );
  rule(optional.length <= 24, `${path}: too many optional parameters`);
  const unions = all.filter(({ anyOf, type }) => anyOf !== undefined || Array.isArray(type));
  rule(unions.length <= 16, `${path}: too many parameters with union types`);
}

/**
 * Checks the schema of an answer of Anthropic's, which may contain `allOf`.
 * @throws BrokenRule
 */
export function checkAnthropicAnswer(schema: unknown, path: string): void {
  for (const each of schemasIn(schema)) {
    refuseWords(each, `${composition.replace('allOf ', '')} ${boundaries}`, path);
    rule(typeof each.minItems !== 'number' || each.minItems <= 1, `${path}: 'minItems' other than 0 or 1`);
  }
  checkClosed(schema, path);
}

/**
 * Checks the schema of a strict answer of OpenAI's.
 * @throws BrokenRule
 */
export function checkOpenAiAnswer(schema: unknown, path: string): void {
  for (const { pattern } of schemasIn(schema))
    rule(typeof pattern !== 'string' || !/\(\?<?[=!]/.test(pattern), `${path}: look-around is not supported`);
  checkOpenAiStrict(objectOf(schema, path), path);
}

function refuseWords(schema: JsonObject, words: string, path: string): void {
  for (const word of words.split(' '))
    rule(schema[word] === undefined, `${path}: '${word}' is not permitted in a strict tool`);
}

function namesIn({ properties, required }: JsonObject): { all: string[]; required: Set<unknown> } {
  return {
    all: Object.keys(isObject(properties) ? properties : {}),
    required: new Set(Array.isArray(required) ? required : []),
  };
}

/** Returns a schema and those within it. */
function schemasIn(schema: unknown): JsonObject[] {
  if (Array.isArray(schema)) return schema.flatMap(schemasIn);
  if (!isObject(schema)) return [];
  const inner = Object.entries(schema).flatMap(([name, value]) => {
    if (name === 'properties' || name === '$defs' || name === 'definitions')
      return Object.values(isObject(value) ? value : {}).flatMap(schemasIn);
    return name === 'enum' || name === 'const' || name === 'default' ? [] : schemasIn(value);
  });
  return [schema, ...inner];
}

/** @throws BrokenRule for an open object in it */
function checkClosed(schema: unknown, path: string): void {
  for (const each of schemasIn(schema))
    if (each.type === 'object')
      rule(each.additionalProperties === false, `${path}: 'additionalProperties' must be false`);
}
