import { type JsonObject, parseObject } from '../../wire/json.js';
import { afterColon, endOfString, needleAt, needleOf, skipSpace } from '../../wire/json-skip.js';

/** What a reference to an item has as its type, where it has one. */
export const referenceType = 'item_reference';

const typed = Buffer.from(`"${referenceType}"`);
const untyped = [Buffer.from('"type":null'), Buffer.from('"type": null')];
const idName = needleOf('"id"');
const QUOTE = 0x22;
const CLOSE_BRACE = 0x7d;

/** Whether an input may refer to an item, as far as its bytes tell. */
export function mayRefer(body: Buffer): boolean {
  return body.includes(typed) || untyped.some((text) => body.includes(text)) || hasOnlyId(body);
}

/** Whether a body may have an object whose last member is its id: one that has no other is a reference. */
function hasOnlyId(body: Buffer): boolean {
  const lastAt = idName.whole.length - 1;
  for (let at = needleAt(body, idName, 0); at !== -1; at = needleAt(body, idName, at + 1)) {
    const value = afterColon(body, at + lastAt);
    if (value === -1 || body[value] !== QUOTE) continue;
    const end = endOfString(body, value + 1);
    if (end !== -1 && body[skipSpace(body, end + 1)] === CLOSE_BRACE) return true;
  }
  return false;
}

/** A reference without its type has an id and no role, by which a message without its type is known. */
export function isReference({ type, id, role }: JsonObject): boolean {
  if (typeof id !== 'string') return false;
  return type === referenceType || (type ?? role ?? null) === null;
}

/** Longer items are none that have an id alone. */
const longestUntyped = 1024;

/** @returns id of the item that an item of an input stands for, by its JSON text; null for any other item */
export function referredTo(element: string): string | null {
  if (element.length > longestUntyped && !element.includes(referenceType)) return null;
  const item = parseObject(element);
  return item !== null && isReference(item) && typeof item.id === 'string' ? item.id : null;
}
