import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../wire/bytes.js';
import { escapesWith, hasEscape } from '../../wire/escapes.js';
import { type JsonObject, parseJson } from '../../wire/json.js';
import {
  afterColon,
  endOfString,
  endOfValue,
  isSpace,
  mostDepth,
  needleAt,
  needleOf,
  skipSpace,
  standsAt,
  withoutMembers,
} from '../../wire/json-skip.js';
import { MemberGuard } from '../../wire/member-guard.js';
import { mayBeCompleted } from './stored-items.js';

/** Type of a reference to an item, if it has one. */
export const referenceType = 'item_reference';

const typed = Buffer.from(`"${referenceType}"`);
/** Escapes of `_` and lower-case letters, which could spell any name or type. */
const escapedLetters = escapesWith('5', '6', '7');
const idName = needleOf('"id"');
/** An item with one of these, and a string as its value, is no reference without a type. */
const namesOfOthers = [Buffer.from('"type"'), Buffer.from('"role"')] as const;
const nameLength = 6;
const nothing = Buffer.from('null');
/** With more nulls than this, the items are read. */
const mostNulls = 256;
/** How far before an id the type of its item is looked for. */
const farthestBefore = 256;
/** The search for types passes over at most this many times the bytes of a body; then, the items are read. */
const mostPasses = 2;

/**
 * Tells from the bytes of a body whether its input may refer to an item, or have one that its upstream completes.
 * @param completes whether the second matters
 */
export function mayRefer(body: Buffer, completes: boolean): boolean {
  if (body.includes(typed) || hasEscape(body, escapedLetters) || hasNoType(body)) return true;
  const first = nextId(body, 0);
  return first !== -1 && (hasBareId(body, first) || (completes && mayBeCompleted(body)));
}

/** Whether an object has null in place of a type or role. */
function hasNoType(body: Buffer): boolean {
  let count = 0;
  for (let at = body.indexOf(nothing); at !== -1; at = body.indexOf(nothing, at + 1)) {
    if (++count > mostNulls) return true;
    let colon = at - 1;
    while (isSpace(body[colon] as number)) colon--;
    if (body[colon] === COLON && isNameOfOthers(body, colon)) return true;
  }
  return false;
}

/** Whether the name before a colon tells that an item is no reference. A quote within a string has an escape. */
function isNameOfOthers(body: Buffer, colon: number): boolean {
  let end = colon;
  while (isSpace(body[end - 1] as number)) end--;
  const start = end - nameLength;
  return (
    start > 0 && body[start - 1] !== BACKSLASH && namesOfOthers.some((name) => standsAt(body, start, name))
  );
}

/** Returns the offset of the next `id` that is a string, or -1. */
function nextId(body: Buffer, from: number): number {
  const lastAt = idName.whole.length - 1;
  for (let at = needleAt(body, idName, from); at !== -1; at = needleAt(body, idName, at + 1)) {
    const value = afterColon(body, at + lastAt);
    if (value !== -1 && body[value] === QUOTE) return at;
  }
  return -1;
}

/** Whether an object may have an id, but neither a type nor a role. @param first offset of the first id */
function hasBareId(body: Buffer, first: number): boolean {
  const lastAt = idName.whole.length - 1;
  let left = mostPasses * body.length;
  for (let at = first; at !== -1; at = nextId(body, at + 1)) {
    if (hasTypeBefore(body, at)) continue;
    const end = endOfString(body, afterColon(body, at + lastAt) + 1);
    const type = end === -1 ? -1 : typeAfter(body, end + 1);
    left -= type - end;
    if (type === -1 || left < 0) return true;
  }
  return false;
}

function hasTypeBefore(body: Buffer, id: number): boolean {
  for (let at = id - 1; at >= Math.max(0, id - farthestBefore); at--) {
    const byte = body[at];
    if (byte === OPEN_BRACE || byte === CLOSE_BRACE || byte === OPEN_BRACKET || byte === CLOSE_BRACKET)
      return false;
    if (byte === COLON && isNameOfOthers(body, at) && body[skipSpace(body, at + 1)] === QUOTE) return true;
  }
  return false;
}

/** @param from offset after a member of an object @returns offset of the type or role behind it, or -1 without one */
function typeAfter(body: Buffer, from: number): number {
  let at = skipSpace(body, from);
  while (body[at] === COMMA) {
    const name = skipSpace(body, at + 1);
    const close = body[name] === QUOTE ? endOfString(body, name + 1) : -1;
    const value = close === -1 ? -1 : afterColon(body, close);
    if (value === -1) return -1;
    const isOthers =
      close + 1 - name === nameLength && namesOfOthers.some((other) => standsAt(body, name, other));
    if (isOthers && body[value] === QUOTE) return value;
    const end = endOfValue(body, value, mostDepth);
    if (end === -1) return -1;
    at = skipSpace(body, end);
  }
  return -1;
}

/**
 * Tells whether an item is a reference. One without a type has an id and no role; a message without a type has a role.
 */
export function isReference({ type, id, role }: JsonObject): boolean {
  if (typeof id !== 'string') return false;
  return type === referenceType || (type ?? role ?? null) === null;
}

/** Begin of an item that is no reference, unless a later member replaces the first one. */
const ordinaryBegin = /^\s*\{\s*"(?:type|role)"\s*:\s*"/;
const ofReference: ReadonlySet<string> = new Set(['type', 'id', 'role']);
const guardOfType = new MemberGuard({ reads: ['type'] });
const guard = new MemberGuard({ reads: [...ofReference] });

/**
 * @param element JSON text of an item of an input
 * @returns id of the item that it refers to; null if it is not a reference
 * @throws {GatewayError} of status 400 for an item that parsers may read differently, some of them as a reference
 */
export function referredTo(element: string): string | null {
  const isOrdinary =
    ordinaryBegin.test(element) &&
    !element.includes(referenceType) &&
    !element.includes('null') &&
    !element.includes('\\u00');
  if (isOrdinary) return null;
  const bytes = Buffer.from(element);
  const open = skipSpace(bytes, 0);
  if (bytes[open] !== OPEN_BRACE) return null;
  guardOfType.look(bytes, open, 'input item');
  const taken = withoutMembers(bytes, ofReference)?.taken;
  const [type, id, role] = ['type', 'id', 'role'].map((name) => parseJson(taken?.get(name) ?? 'null'));
  if (typeof type === 'string' && type !== referenceType) return null;
  guard.look(bytes, open, 'input item');
  return typeof id === 'string' && isReference({ type, id, role }) ? id : null;
}
