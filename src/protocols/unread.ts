import { isObject, type JsonObject } from '../wire/json.js';

/**
 * The members of an object that a decoder reads: each as a whole, or with the parts of it that are read. The elements
 * of a list are examined, not the list. What is read may depend on the object, such as on the type of a part.
 */
export type Shape = ReadonlyMap<string, Read>;
type Read = true | Shape | ((value: JsonObject) => Shape | true);

/** Anything deeper counts as read, since the nesting of a body has no limit. */
const deepest = 12;

/**
 * Finds members that a decoder does not read. A value that is null, false or empty is ignored.
 * @param body the client's
 * @param shape what its decoder reads
 * @param defaults values without an effect, by the names of their members
 * @returns names of members, from the body or from the innermost list on (`generationConfig.topK`, `cache_control`)
 */
export function unreadMembers(body: JsonObject, shape: Shape, defaults: JsonObject = {}): string[] {
  const unread: Unread = { names: null, defaults };
  look(body, shape, '', deepest, unread);
  return unread.names === null ? [] : [...unread.names];
}

/** What was found: nothing in most bodies. */
interface Unread {
  names: Set<string> | null;
  readonly defaults: JsonObject;
}

function look(value: unknown, read: Read, path: string, levels: number, unread: Unread): void {
  if (read === true || levels === 0) return;
  if (Array.isArray(value)) {
    for (const each of value) look(each, read, '', levels - 1, unread);
    return;
  }
  if (!isObject(value)) return;
  const shape = typeof read === 'function' ? read(value) : read;
  if (shape === true) return;
  for (const name of Object.keys(value)) {
    const inner = shape.get(name);
    if (inner === true) continue;
    const at = path === '' ? name : `${path}.${name}`;
    if (inner !== undefined) look(value[name], inner, at, levels - 1, unread);
    else if (saysSomething(value[name]) && unread.defaults[at] !== value[name]) {
      unread.names ??= new Set();
      unread.names.add(at);
    }
  }
}

function saysSomething(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/**
 * @param members names of members that are read as a whole, members with what is read of each, and shapes whose members
 * are included
 */
export function shapeOf(...members: readonly (string | Readonly<Record<string, Read>> | Shape)[]): Shape {
  return new Map(members.flatMap(entriesOf));
}

function entriesOf(member: string | Readonly<Record<string, Read>> | Shape): (readonly [string, Read])[] {
  if (typeof member === 'string') return [[member, true]];
  return member instanceof Map ? [...member] : Object.entries(member);
}
