import { entryOf } from '../../wire/entry-of.js';
import { isObject, type JsonObject, objectsOf } from '../../wire/json.js';

/*
 * The protocol's bodies are protocol buffers in JSON. Their readers accept each member in lowerCamelCase and under its
 * original name (https://protobuf.dev/programming-guides/json/): `systemInstruction` and `system_instruction`.
 */

const snakeNames = new Map<string, string>();

/**
 * Returns the original name of a member.
 * @param name a name of the protocol, which is cached permanently
 */
export function snakeCase(name: string): string {
  return entryOf(snakeNames, name, inSnakeCase);
}

function inSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Returns the name under which an object has a member.
 * @param name in lowerCamelCase; returned if the object has neither
 */
export function keyOf(object: JsonObject, name: string): string {
  if (object[name] !== undefined) return name;
  const snake = snakeCase(name);
  return object[snake] === undefined ? name : snake;
}

/** Returns the value of a member under either name. Null and absent are the same. */
export function memberOf(object: JsonObject, name: string): unknown {
  return object[name] ?? object[snakeCase(name)] ?? null;
}

/** Returns the object with all of its own members in lowerCamelCase, or the object itself if they already are. */
export function inCamelCase(object: JsonObject): JsonObject {
  const names = Object.keys(object);
  if (names.every((name) => camelCase(name) === name)) return object;
  const renamed: Record<string, unknown> = {};
  for (const name of names) if (camelCase(name) !== name) renamed[camelCase(name)] = object[name];
  // The first name takes precedence over the other, unless its value is empty.
  for (const name of names)
    if (camelCase(name) === name && object[name] !== null) renamed[name] = object[name];
  return renamed;
}

function camelCase(name: string): string {
  // An underscore at the beginning is part of either name.
  if (!name.includes('_', 1)) return name;
  return name.replaceAll(/(?<!^)_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * The objects of a repeated field with the place of each in the client's body. The vendor's reader takes a single one
 * without its brackets too; null and absent are none.
 * @param at path of the field
 */
export function repeated(value: unknown, at: string): readonly (readonly [value: JsonObject, at: string])[] {
  if (isObject(value)) return [[value, at]];
  return objectsOf(value).map((each, index) => [each, `${at}[${index}]`]);
}
