import { untagSignature } from '../../conversation/signature.js';
import { changedObjects, isList, isObject, type JsonObject } from '../../wire/json.js';
import { unsigned } from './request/encode.js';
import { keyOf, memberOf, snakeCase } from './spelling.js';

const wrapper = 'generateContentRequest';
const signatureKeys = ['thoughtSignature', snakeCase('thoughtSignature')] as const;

/** A part as it goes to the vendor: null for one that is left out. */
interface RestoredPart {
  readonly part: JsonObject | null;
  /** Another vendor has signed it. */
  readonly isForeign: boolean;
}

/**
 * Makes a body fit for an upstream of the protocol: its vendor's signatures are taken out of their tokens, and what
 * another vendor signed loses its signature and the thoughts that it is for; see `Translation.restore`. A call gets what
 * stands for one: the vendor refuses calls without any. Bodies of `countTokens` may have the request in a member.
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

/** @returns the content itself when there is nothing to do, and null when nothing is left of it */
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

/** A signature stands on the part after the reasoning that it is for: takes that from the end of the parts. */
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

/** True for a part that was there for its signature alone. */
function saysNothing(part: JsonObject): boolean {
  return Object.keys(part).every((key) => part[key] === null || (key === 'text' && part[key] === ''));
}
