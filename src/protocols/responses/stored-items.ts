import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../wire/bytes.js';
import { parseJson } from '../../wire/json.js';
import {
  afterColon,
  endOfPlain,
  endOfValue,
  mostDepth,
  skipSpace,
  standsAt,
  withoutMembers,
} from '../../wire/json-skip.js';
import { MemberGuard } from '../../wire/member-guard.js';
import { itemsMember } from '../../wire/routed-members.js';

/*
 * Items of an input that do not contain all that they are: reasoning without its text, and calls of tools that the
 * upstream runs. Upstreams take the rest from what they have stored under the item's id
 * (https://developers.openai.com/api/docs/guides/tools-image-generation, "Using image ID"). An item with its content
 * needs no store: OpenAI refuses the text of reasoning that is not encrypted, and encrypted text that is not the item's.
 */

/** The members that hold the content of an item, by its type. None holds what a search has found. */
const contents: ReadonlyMap<string, readonly ContentName[]> = new Map([
  ['reasoning', ['encrypted_content', 'content']],
  ['image_generation_call', ['result']],
  ['web_search_call', []],
  ['file_search_call', []],
  ['code_interpreter_call', []],
]);
const contentNames = ['encrypted_content', 'content', 'result'] as const;
type ContentName = (typeof contentNames)[number];

const types = [...contents].map(([type, names]) => ({ quoted: Buffer.from(`"${type}"`), names }));
const quotedTypes = [...contents.keys()].map((type) => `"${type}"`);
const inputName = Buffer.from(itemsMember);
const ofItem = ['type', 'id', ...contentNames] as const;
const names = ofItem.map((name) => Buffer.from(name));
const guard = new MemberGuard({
  reads: [...ofItem],
  echoes: { encrypted_content: 'encryptedContent' },
});
const guardOfType = new MemberGuard({ reads: ['type'] });

/**
 * Tells from the bytes of a body whether an item of its input may be completed from its upstream's store. Values are
 * passed over; whatever is unclear may be completed.
 */
export function mayBeCompleted(body: Buffer): boolean {
  let at = skipSpace(body, 0);
  if (body[at] !== OPEN_BRACE) return true;
  at = skipSpace(body, at + 1);
  while (body[at] === QUOTE) {
    const close = endOfPlain(body, at + 1);
    const value = close === -1 ? -1 : afterColon(body, close);
    if (value === -1) return true;
    if (close - at - 1 === inputName.length && standsAt(body, at + 1, inputName))
      return body[value] === OPEN_BRACKET && !areWhole(body, value);
    const end = endOfValue(body, value, mostDepth);
    if (end === -1) return true;
    at = skipSpace(body, end);
    if (body[at] === COMMA) at = skipSpace(body, at + 1);
  }
  return body[at] !== CLOSE_BRACE;
}

/** @param list offset of the items */
function areWhole(body: Buffer, list: number): boolean {
  let at = skipSpace(body, list + 1);
  if (body[at] === CLOSE_BRACKET) return true;
  for (;;) {
    const end = body[at] === OPEN_BRACE ? endOfWhole(body, at) : endOfValue(body, at, mostDepth);
    if (end === -1) return false;
    at = skipSpace(body, end);
    if (body[at] === CLOSE_BRACKET) return true;
    if (body[at] !== COMMA) return false;
    at = skipSpace(body, at + 1);
  }
}

/** Returns the offset after an item; -1 for one that may be completed. @param open its offset */
function endOfWhole(body: Buffer, open: number): number {
  let isStored = false;
  let at = skipSpace(body, open + 1);
  while (body[at] === QUOTE) {
    const close = endOfPlain(body, at + 1);
    const value = close === -1 ? -1 : afterColon(body, close);
    const end = value === -1 ? -1 : endOfValue(body, value, mostDepth);
    if (end === -1) return -1;
    if (close - at === typeName.length + 1 && isTypeName(body, at + 1) && typeAt(body, value, end) !== null)
      isStored = true;
    at = skipSpace(body, end);
    if (body[at] === COMMA) at = skipSpace(body, at + 1);
  }
  if (body[at] !== CLOSE_BRACE) return -1;
  return isStored && !isWhole(body, open) ? -1 : at + 1;
}

const typeName = Buffer.from('type');

/** Whether a name is `type`, in whatever case. */
function isTypeName(body: Buffer, start: number): boolean {
  for (let at = 0; at < typeName.length; at++)
    if (((body[start + at] as number) | 0x20) !== typeName[at]) return false;
  return true;
}

/** Whether an item that upstreams complete has its content, or no id. @param open offset of an item that can be read */
function isWhole(body: Buffer, open: number): boolean {
  let type: (typeof types)[number] | null = null;
  let seen = 0;
  let filled = 0;
  let at = skipSpace(body, open + 1);
  while (body[at] === QUOTE) {
    const close = endOfPlain(body, at + 1);
    const value = afterColon(body, close);
    const end = endOfValue(body, value, mostDepth);
    // The guard makes a text of each name that it knows.
    const place = placeOf(body, at + 1, close);
    if (place !== -1 || guard.concerns(body, at + 1, close)) {
      const bit = 1 << place;
      // Another spelling, or a second one.
      if (place === -1 || (seen & bit) !== 0) return false;
      seen |= bit;
      if (place === 0) type = typeAt(body, value, end);
      else if (place > 1 && isFilled(body, value, place === listPlace)) filled |= bit;
    }
    at = skipSpace(body, end);
    if (body[at] === COMMA) at = skipSpace(body, at + 1);
  }
  if (type === null) return false;
  return (seen & idBit) === 0 || type.names.some((name) => (filled & (1 << ofItem.indexOf(name))) !== 0);
}

const idBit = 1 << ofItem.indexOf('id');
const listPlace = ofItem.indexOf('content');

/** Returns the index of a name among those that are read, or -1. */
function placeOf(body: Buffer, start: number, end: number): number {
  for (let index = 0; index < names.length; index++) {
    const name = names[index] as Buffer;
    if (name.length === end - start && standsAt(body, start, name)) return index;
  }
  return -1;
}

const unclearType = { quoted: Buffer.alloc(0), names: [] };

/** Returns the type at an offset if it is one of those completed, or may be. */
function typeAt(body: Buffer, start: number, end: number): (typeof types)[number] | null {
  for (const type of types)
    if (type.quoted.length === end - start && standsAt(body, start, type.quoted)) return type;
  for (let at = start; at < end; at++) if (body[at] === BACKSLASH) return unclearType;
  return null;
}

/** Whether a value is a text that is not blank, or a list that is not empty. False if this is unclear. */
function isFilled(body: Buffer, value: number, isList: boolean): boolean {
  const first = body[skipSpace(body, value + 1)] as number;
  if (isList) return body[value] === OPEN_BRACKET && first !== CLOSE_BRACKET;
  return body[value] === QUOTE && first !== QUOTE && first !== BACKSLASH && first < 0x80;
}

const asked: ReadonlySet<string> = new Set(ofItem);

/**
 * @param element JSON text of an item of an input
 * @returns id under which its upstream may find what the item does not contain; null if there is nothing to find
 * @throws {GatewayError} of status 400 for such an item that parsers may read differently
 */
export function storedAs(element: string): string | null {
  if (!element.includes('\\u00') && !quotedTypes.some((type) => element.includes(type))) return null;
  const bytes = Buffer.from(element);
  const open = skipSpace(bytes, 0);
  if (bytes[open] !== OPEN_BRACE) return null;
  const taken = withoutMembers(bytes, asked)?.taken;
  const memberOf = (name: string): unknown => parseJson(taken?.get(name) ?? 'null');
  const type = memberOf('type');
  const ofType = typeof type === 'string' ? contents.get(type) : undefined;
  (ofType === undefined ? guardOfType : guard).look(bytes, open, 'input item');
  const id = memberOf('id');
  if (ofType === undefined || typeof id !== 'string') return null;
  return ofType.some((name) => isContent(name, memberOf(name))) ? null : id;
}

function isContent(name: ContentName, value: unknown): boolean {
  if (name === 'content') return Array.isArray(value) && value.length > 0;
  return typeof value === 'string' && value.trim() !== '';
}
