import type { Cacheable, CacheMark, ToolResultPart } from '../../conversation/request.js';
import { isObject, type JsonObject } from '../../wire/json.js';

/**
 * Reads OpenAI's mark of the part of a prompt to keep in its prompt cache. The mark has a minimum time, `30m` or `12h`;
 * the longest that other vendors keep one is an hour. Source: https://platform.openai.com/docs/guides/prompt-caching
 */
export function breakpointOf({ prompt_cache_breakpoint: mark }: JsonObject): CacheMark | null {
  if (!isObject(mark) || mark.mode !== 'explicit') return null;
  return { ttl: typeof mark.ttl === 'string' ? '1h' : null, name: 'prompt_cache_breakpoint' };
}

/** Returns the part with the mark, if there is one. */
export function marked<Part extends Cacheable>(part: Part, cache: CacheMark | null): Part {
  return cache === null ? part : { ...part, cache };
}

/** Returns the last mark among parts, which applies to all parts before it. */
export function lastMark(parts: readonly Cacheable[]): CacheMark | null {
  return parts.findLast(({ cache }) => cache)?.cache ?? null;
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
