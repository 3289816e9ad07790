import { isObject, type JsonObject } from '../../src/wire/json.js';

/** Returns the value at a path of member names and indexes in a parsed JSON value, or undefined. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let found = value;
  for (const step of path) {
    if (typeof step === 'number') found = Array.isArray(found) ? found.at(step) : undefined;
    else found = isObject(found) ? found[step] : undefined;
  }
  return found;
}

/** Returns the text there, or an empty one. */
export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** Returns the number there, or 0. */
export function numberAt(value: unknown, ...path: readonly (string | number)[]): number {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : 0;
}

/** Returns the objects of the array there; empty without an array. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly JsonObject[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.filter(isObject) : [];
}

/** Returns the object there, or an empty one. */
export function objectAt(value: unknown, ...path: readonly (string | number)[]): JsonObject {
  const found = at(value, ...path);
  return isObject(found) ? found : {};
}

/** Returns the members that have a value. */
export function present(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Parses the arguments of a call; empty for an empty text. @throws SyntaxError if they are not JSON */
export function argumentsIn(text: string): unknown {
  return text === '' ? {} : (JSON.parse(text) as unknown);
}
