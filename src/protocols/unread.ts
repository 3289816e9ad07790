import { isObject, type JsonObject } from '../wire/json.js';

/**
 * The members of an object that a decoder reads: each as a whole, or with what of it is read. A list is looked through
 * as its elements are. What is read may depend on the object, as a part's on its type.
 */
export interface Shape {
  readonly [name: string]: Read;
}
type Read = true | Shape | ((value: JsonObject) => Shape | true);

/** Deeper ones are taken as read: a body can be nested without end. */
const deepest = 8;

/**
 * Finds what a decoder does not read. What is null, false or empty says nothing.
 * @param body of the client
 * @param shape what its decoder reads
 * @param defaults values that change nothing, by the names of their members
 * @returns names of members: with those of the objects around them, or from the last list on (`generationConfig.topK`,
 * `cache_control`)
 */
export function unreadMembers(body: JsonObject, shape: Shape, defaults: JsonObject = {}): string[] {
  const names = new Set<string>();
  look(body, shape, '', deepest, (name, value) => {
    if (saysSomething(value) && defaults[name] !== value) names.add(name);
  });
  return [...names];
}

function look(
  value: unknown,
  read: Read,
  path: string,
  levels: number,
  note: (name: string, value: unknown) => void,
): void {
  if (read === true || levels === 0) return;
  if (Array.isArray(value)) {
    for (const each of value) look(each, read, '', levels - 1, note);
    return;
  }
  if (!isObject(value)) return;
  const shape = typeof read === 'function' ? read(value) : read;
  if (shape === true) return;
  for (const name of Object.keys(value)) {
    const inner = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (inner === true) continue;
    const at = path === '' ? name : `${path}.${name}`;
    if (inner === undefined) note(at, value[name]);
    else look(value[name], inner, at, levels - 1, note);
  }
}

function saysSomething(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/** A shape of which all these members are read as wholes. */
export function wholes(...names: readonly string[]): Shape {
  return Object.fromEntries(names.map((name) => [name, true]));
}
