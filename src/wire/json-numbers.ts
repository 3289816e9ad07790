import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, DOT, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './bytes.js';
import { countOrNone, isList, isObject, type JsonObject } from './json.js';
import { endOfDigits, skipSpace, stringEnd } from './json-skip.js';

/*
 * Reads numbers of a JSON object by name from its bytes.
 */

/** Names of the numbers to find. Values are stored in the same order, with those of the scopes last. */
export interface NumberNames {
  readonly count: number;
  readonly anywhere: Names;
  /** Names of the objects that are scopes, and the names that are valid within each of them. */
  readonly scopes: Names;
  readonly inScope: readonly Names[];
}

interface Names {
  readonly indexes: ReadonlyMap<string, number>;
  /** Names by length, of which few are equal. */
  readonly byLength: readonly (readonly NumberName[])[];
}

interface NumberName {
  readonly index: number;
  readonly bytes: Uint8Array;
}

/** Names that are valid only within certain objects, since they mean something else elsewhere. */
export interface NumberScope {
  /** Names of such an object. */
  readonly objects: readonly string[];
  readonly names: readonly string[];
}

/**
 * Prepares names, which must be plain ASCII without quotes.
 * @param names names that are valid at any depth
 * @param scopes names that are valid within certain objects, where they take precedence; scopes may be nested
 */
export function numberNames(names: readonly string[], scopes: readonly NumberScope[] = []): NumberNames {
  let count = 0;
  const indexed = (list: readonly string[]): Names => namesOf(list.map((name) => [name, count++] as const));
  const anywhere = indexed(names);
  const inScope = scopes.map((scope) => indexed(scope.names));
  const objects = scopes.flatMap((scope, index) => scope.objects.map((name) => [name, index] as const));
  return { count, anywhere, scopes: namesOf(objects), inScope };
}

function namesOf(names: readonly (readonly [name: string, index: number])[]): Names {
  const all = names.map(([name, index]) => ({ index, bytes: Uint8Array.from(Buffer.from(name)) }));
  const longest = Math.max(0, ...names.map(([name]) => name.length));
  const byLength = Array.from({ length: longest + 1 }, (_, length) =>
    all.filter(({ bytes }) => bytes.length === length),
  );
  return { indexes: new Map(names), byLength };
}

/**
 * Reads counts of an object by name, at any depth within it, without parsing it: a parse of a usage object costs
 * several times as much. If a name occurs twice, the first value counts.
 * @param start offset of the object
 * @param values receives the numbers found, floored; -1 for names that are missing or whose value is not digits
 * @returns offset after the object, or -1 if it is not closed
 */
export function readNumbers(bytes: Buffer, start: number, wanted: NumberNames, values: number[]): number {
  const { count, anywhere, scopes, inScope } = wanted;
  for (let i = 0; i < count; i++) values[i] = -1;
  let depth = 0;
  // The current scope and the one around it, each with the depth of its members; -1 for none.
  let scope = -1;
  let scopeDepth = -1;
  let outer = -1;
  let outerDepth = -1;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth++;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (--depth === 0) return at + 1;
      if (depth >= scopeDepth) continue;
      scope = outer;
      scopeDepth = outerDepth;
      outer = -1;
      outerDepth = -1;
    } else if (byte === QUOTE) {
      const from = at + 1;
      at = stringEnd(bytes, from);
      const value = skipSpace(bytes, at + 1);
      if (bytes[value] !== COLON) continue;
      const first = skipSpace(bytes, value + 1);
      const opened = bytes[first] === OPEN_BRACE ? indexOfName(scopes, bytes, from, at) : -1;
      if (opened !== -1) {
        outer = scope;
        outerDepth = scopeDepth;
        scope = opened;
        scopeDepth = depth + 1;
      } else {
        let index = scope === -1 ? -1 : indexOfName(inScope[scope] as Names, bytes, from, at);
        if (index === -1) index = indexOfName(anywhere, bytes, from, at);
        if (index !== -1 && values[index] === -1) values[index] = wholeNumber(bytes, first, true);
      }
      at = value;
    }
  }
  return -1;
}

/** Reads the same numbers as `readNumbers` from an object that is already parsed. */
export function collectNumbers(object: JsonObject, wanted: NumberNames, values: number[]): void {
  for (let i = 0; i < wanted.count; i++) values[i] = -1;
  collectWithin(object, wanted, values, null);
}

/** @param scope names of the current scope, or null */
function collectWithin(
  holder: JsonObject | readonly unknown[],
  wanted: NumberNames,
  values: number[],
  scope: Names | null,
): void {
  if (isList(holder)) {
    for (const each of holder) if (isList(each) || isObject(each)) collectWithin(each, wanted, values, scope);
    return;
  }
  for (const name in holder) {
    const value = holder[name];
    if (typeof value === 'number') {
      const index = scope?.indexes.get(name) ?? wanted.anywhere.indexes.get(name) ?? -1;
      if (index !== -1 && values[index] === -1) values[index] = countOrNone(value);
    } else if (isList(value)) {
      collectWithin(value, wanted, values, scope);
    } else if (isObject(value)) {
      const opened = wanted.scopes.indexes.get(name) ?? -1;
      collectWithin(value, wanted, values, opened === -1 ? scope : (wanted.inScope[opened] as Names));
    }
  }
}

function indexOfName({ byLength }: Names, bytes: Buffer, from: number, to: number): number {
  const length = to - from;
  if (length >= byLength.length) return -1;
  const names = byLength[length] as readonly NumberName[];
  next: for (let i = 0; i < names.length; i++) {
    const name = names[i] as NumberName;
    for (let j = 0; j < length; j++) if (name.bytes[j] !== bytes[from + j]) continue next;
    return name.index;
  }
  return -1;
}

/**
 * Reads the digits at `from` as a number. Returns -1 if there are none, or if they are not the end of a value.
 * @param isFloored whether a fraction may follow, which is ignored
 */
export function wholeNumber(bytes: Buffer, from: number, isFloored = false): number {
  let value = 0;
  let at = from;
  for (; at < from + 16; at++) {
    const digit = (bytes[at] as number) - 0x30;
    if (!(digit >= 0 && digit <= 9)) break;
    value = value * 10 + digit;
  }
  const hasDigits = at > from;
  if (isFloored && bytes[at] === DOT) at = endOfDigits(bytes, at + 1);
  const after = bytes[at] as number;
  const ended = after === COMMA || after === CLOSE_BRACE || after <= 0x20;
  return hasDigits && ended && Number.isSafeInteger(value) ? value : -1;
}
