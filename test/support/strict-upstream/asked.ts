import type { TextProtocolName } from '../../../src/conversation/request.js';
import { isObject, type JsonObject } from '../../../src/wire/json.js';

export interface AskedTool {
  readonly name: string;
  /** It takes free text in place of JSON. */
  readonly custom: boolean;
  /** The namespace that a responses client put it in. */
  readonly namespace: string | undefined;
}

export interface AskedTurn {
  readonly role: 'user' | 'model';
  readonly texts: string[];
  images: number;
  /** Ids of calls of tools. */
  readonly calls: string[];
  /** What tools gave. */
  readonly results: string[];
}

/** A request that kept its vendor's rules, apart from how its protocol words it. */
export interface Asked {
  readonly wire: TextProtocolName;
  readonly model: string;
  readonly stream: boolean;
  readonly tools: readonly AskedTool[];
  readonly turns: readonly AskedTurn[];
  /** Whether it switched reasoning on, which some models do of themselves. */
  readonly thinks: boolean;
  /** Whether the words of the reasoning are shown. */
  readonly shows: boolean;
  /** The schema that the answer must fit, or undefined. */
  readonly schema: unknown;
  /** A chat stream was asked to tell its usage, and responses to give their reasoning in encrypted form. */
  readonly includes: boolean;
}

/** What a vendor says to a request that breaks its rules: 400 and these words. */
export class BrokenRule extends Error {}

/** @throws BrokenRule unless the rule holds */
export function rule(holds: boolean, words: string): asserts holds {
  if (!holds) throw new BrokenRule(words);
}

/** @throws BrokenRule for a member that the vendor does not know */
export function onlyMembers(value: JsonObject, known: string, path: string): void {
  const names = known.split(' ');
  for (const name of Object.keys(value)) rule(names.includes(name), `${path}${name}: unknown member`);
}

/** @throws BrokenRule for what is no array of objects */
export function objectsOf(value: unknown, path: string): readonly JsonObject[] {
  rule(Array.isArray(value), `${path}: not an array`);
  for (const each of value) rule(isObject(each), `${path}: an element is not an object`);
  return value as JsonObject[];
}

/** @throws BrokenRule for what is no object */
export function objectOf(value: unknown, path: string): JsonObject {
  rule(isObject(value), `${path}: not an object`);
  return value;
}

/** @throws BrokenRule for what is no text, or an empty or too long one */
export function textOf(value: unknown, path: string, most = Number.POSITIVE_INFINITY): string {
  rule(typeof value === 'string' && value !== '', `${path}: not a text with characters`);
  rule(value.length <= most, `${path}: longer than ${most} characters`);
  return value;
}

/** @throws BrokenRule for a value that is given and none of these words */
export function oneOf(value: unknown, words: string, path: string): void {
  if (value === undefined || value === null) return;
  rule(typeof value === 'string' && words.split(' ').includes(value), `${path}: not one of ${words}`);
}

/** @returns a turn without content */
export function newTurn(role: AskedTurn['role']): AskedTurn {
  return { role, texts: [], images: 0, calls: [], results: [] };
}

/** Names of tools come once and are of these characters. @throws BrokenRule */
export function checkNames(names: readonly string[], pattern: RegExp, path: string): void {
  for (const name of names) rule(pattern.test(name), `${path}: '${name}' does not match ${pattern}`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  rule(twice === undefined, `${path}: '${twice}' is declared twice`);
}

/**
 * The schema of a function as OpenAI and Anthropic want it: an object, with every member required and none added where
 * it is strict.
 * @throws BrokenRule
 */
export function checkSchema(schema: unknown, strict: boolean, path: string): void {
  const root = objectOf(schema, path);
  rule(root.type === 'object', `${path}: its type is not 'object'`);
  if (strict) checkClosed(root, path);
}

/** @throws BrokenRule for an object in it that is open, or has a member that may be left out */
export function checkClosed(schema: unknown, path: string): void {
  if (Array.isArray(schema)) for (const each of schema) checkClosed(each, path);
  if (!isObject(schema)) return;
  const { properties } = schema;
  if (schema.type === 'object') {
    rule(schema.additionalProperties === false, `${path}: 'additionalProperties' must be false`);
    const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
    for (const name of Object.keys(isObject(properties) ? properties : {}))
      rule(required.includes(name), `${path}: '${name}' is not in 'required'`);
  }
  for (const [name, value] of Object.entries(schema)) {
    if (name === 'properties' || name === '$defs')
      for (const each of Object.values(isObject(value) ? value : {})) checkClosed(each, path);
    else if (name !== 'enum' && name !== 'const') checkClosed(value, path);
  }
}
