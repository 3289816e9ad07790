import { untagSignature } from '../../conversation/signature.js';
import { changedObjects, isList, isObject, type JsonObject } from '../../wire/json.js';
import { unsigned } from './request/encode.js';
import { keyOf, memberOf, snakeCase } from './spelling.js';

const wrapper = 'generateContentRequest';
const signatureKeys = ['thoughtSignature', snakeCase('thoughtSignature')] as const;

/** A part as it is sent to the vendor; null for one that is left out. */
interface RestoredPart {
  readonly part: JsonObject | null;
  /** Another vendor signed the part. */
  readonly isForeign: boolean;
}

/**
 * Prepares a body for an upstream of this protocol; see `Translation.restore`. Signatures of its vendor are taken out
 * of their tokens. A part that another vendor signed loses its signature and the thoughts before it. A call without a
 * signature gets a replacement, since the vendor refuses it otherwise. Bodies of `countTokens` may have the request in
 * a member.
 */
export function restore(body: JsonObject): JsonObject | null {
  const wrapped = memberOf(body, wrapper);
  if (isObject(wrapped)) {
    const restored = restore(wrapped);
    return restored === null ? null : { ...body, [keyOf(body, wrapper)]: restored };
  }
  const given = isList(body.contents) ? body.contents : [body.contents];
  const contents = changedObjects(given, restoreContent);
  return contents === null ? null : { ...body, contents };
}

/** @returns the content itself if there is nothing to change, and null if nothing of it remains */
function restoreContent(content: JsonObject): JsonObject | null {
  const { parts } = content;
  if (isObject(parts)) {
    const { part } = restorePart(parts);
    if (part === parts) return content;
    return part === null ? null : { ...content, parts: part };
  }
  if (!isList(parts)) return content;
  let isChanged = false;
  const restored: unknown[] = [];
  for (const given of parts) {
    if (!isObject(given)) {
      restored.push(given);
      continue;
    }
    const { part, isForeign } = restorePart(given);
    if (part !== given) isChanged = true;
    if (isForeign) dropThoughts(restored);
    if (part !== null) restored.push(part);
  }
  if (!isChanged) return content;
  return restored.length === 0 ? null : { ...content, parts: restored };
}

/** Removes thoughts from the end of the parts: a signature stands on the part after the reasoning that it signs. */
function dropThoughts(parts: unknown[]): void {
  while (isUnsignedThought(parts.at(-1))) parts.pop();
}

function isUnsignedThought(part: unknown): boolean {
  return isObject(part) && part.thought === true && !signatureKeys.some((key) => Object.hasOwn(part, key));
}

function restorePart(part: JsonObject): RestoredPart {
  let restored = part;
  let isForeign = false;
  for (const key of signatureKeys) {
    const token = part[key];
    const signature = typeof token === 'string' ? untagSignature(token) : null;
    if (signature === null) continue;
    if (signature.protocol === 'generateContent') {
      restored = { ...restored, [key]: signature.value };
    } else {
      isForeign = true;
      const { [key]: _, ...rest } = restored;
      restored = isObject(memberOf(part, 'functionCall')) ? { ...rest, [key]: unsigned } : rest;
    }
  }
  if (isForeign && (part.thought === true || saysNothing(restored))) return { part: null, isForeign };
  return { part: restored, isForeign };
}

/** Tells whether a part has nothing but its signature. */
function saysNothing(part: JsonObject): boolean {
  return Object.keys(part).every((key) => part[key] === null || (key === 'text' && part[key] === ''));
}
