import { isObject, type JsonObject } from '../wire/json.js';

/**
 * Resolves a JSON pointer (RFC 6901) within a JSON Schema, in the form of a `$ref`.
 * @returns null for anything else, and if it does not lead to an object
 */
export function resolvePointer(reference: string, root: JsonObject): JsonObject | null {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return null;
  let at: unknown = root;
  for (const token of reference.slice(2).split('/')) {
    const name = decodeToken(token);
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return null;
    at = (at as JsonObject)[name];
  }
  return isObject(at) ? at : null;
}

function decodeToken(token: string): string {
  const plain = token.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}
