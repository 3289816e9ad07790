import type { Cacheable, CacheMark } from '../../conversation/request.js';
import { isObject, type JsonObject } from '../../wire/json.js';

/**
 * Reads OpenAI's mark of how far its prompt cache is to keep a prompt. It says for how long at least, `30m` or `12h`: the
 * longest that others keep one for is an hour.
 * Source: https://platform.openai.com/docs/guides/prompt-caching
 */
export function breakpointOf({ prompt_cache_breakpoint: mark }: JsonObject): CacheMark | null {
  if (!isObject(mark) || mark.mode !== 'explicit') return null;
  return { ttl: typeof mark.ttl === 'string' ? '1h' : null, name: 'prompt_cache_breakpoint' };
}

/** The part with the mark, if there is one. */
export function marked<Part extends Cacheable>(part: Part, cache: CacheMark | null): Part {
  return cache === null ? part : { ...part, cache };
}

/** The last mark among parts, which holds for all before it. */
export function lastMark(parts: readonly Cacheable[]): CacheMark | null {
  return parts.findLast(({ cache }) => cache)?.cache ?? null;
}
