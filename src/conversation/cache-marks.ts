import { isObject, type JsonObject } from '../wire/json.js';
import type { Cacheable, CacheMark, ToolResultPart } from './request.js';

/**
 * Reads `cache_control` of the messages protocol. Values that the vendor does not document are ignored.
 * Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 */
export function cacheMarkOf({ cache_control: control }: JsonObject): CacheMark | null {
  if (!isObject(control) || control.type !== 'ephemeral') return null;
  return { ttl: control.ttl === '5m' || control.ttl === '1h' ? control.ttl : null };
}

/** Returns the part with the mark, if there is one. */
export function marked<Part extends Cacheable>(part: Part, cache: CacheMark | null): Part {
  return cache === null ? part : { ...part, cache };
}

/** Returns the last mark among parts, which applies to all parts before it. */
export function lastMark(parts: readonly Cacheable[]): CacheMark | null {
  // A loop: nearly all conversations have long lists of parts, and few marks.
  for (let index = parts.length - 1; index >= 0; index--) {
    const cache = parts[index]?.cache;
    if (cache) return cache;
  }
  return null;
}

/**
 * Returns a tool result with one cache mark as a whole, and none on its parts.
 * @param own the mark of the whole result; null to use the last one of its parts
 */
export function markedAsWhole(result: ToolResultPart, own: CacheMark | null): ToolResultPart {
  const last = lastMark(result.content);
  if (last === null) return marked(result, own);
  const content = result.content.map(({ cache: _own, ...part }) => part);
  return marked({ ...result, content }, own ?? last);
}
