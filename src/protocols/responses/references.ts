import { CLOSE_BRACE, QUOTE } from '../../wire/bytes.js';
import { type JsonObject, parseObject } from '../../wire/json.js';
import { afterColon, endOfString, needleAt, needleOf, skipSpace } from '../../wire/json-skip.js';

/** Type of a reference to an item, if it has one. */
export const referenceType = 'item_reference';

const typed = Buffer.from(`"${referenceType}"`);
const untyped = [Buffer.from('"type":null'), Buffer.from('"type": null')];
const idName = needleOf('"id"');

/** Tells from the bytes of a body whether its input may refer to an item. */
export function mayRefer(body: Buffer): boolean {
  return body.includes(typed) || untyped.some((text) => body.includes(text)) || hasOnlyId(body);
}

/** Tells whether a body may contain an object that ends with its id. An object with an id alone is a reference. */
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

/**
 * Tells whether an item is a reference. One without a type has an id and no role; a message without a type has a role.
 */
export function isReference({ type, id, role }: JsonObject): boolean {
  if (typeof id !== 'string') return false;
  return type === referenceType || (type ?? role ?? null) === null;
}

/** Longer items cannot be those with only an id. */
const longestUntyped = 1024;

/**
 * @param element JSON text of an item of an input
 * @returns id of the item that it refers to; null if it is not a reference
 */
export function referredTo(element: string): string | null {
  if (element.length > longestUntyped && !element.includes(referenceType)) return null;
  const item = parseObject(element);
  return item !== null && isReference(item) && typeof item.id === 'string' ? item.id : null;
}
