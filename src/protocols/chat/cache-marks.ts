import type { Cacheable, CacheMark } from '../../conversation/request.js';
import { isObject, type JsonObject } from '../../wire/json.js';

/**
 * Reads `cache_control`, which clients of chat send for messages upstreams: on a part, on a message as its last part's,
 * on a tool or on its function. What the vendor does not document is none.
 * Sources: https://openrouter.ai/docs/guides/best-practices/prompt-caching, https://docs.litellm.ai/docs/completion/prompt_caching
 */
export function cacheMarkOf(value: JsonObject): CacheMark | null {
  const control = value.cache_control;
  if (!isObject(control) || control.type !== 'ephemeral') return null;
  return { ttl: control.ttl === '5m' || control.ttl === '1h' ? control.ttl : null };
}

/** The part with the mark, if there is one. */
export function marked<Part extends Cacheable>(part: Part, cache: CacheMark | null): Part {
  return cache === null ? part : { ...part, cache };
}

/** The parts of a message, of which the last bears the message's own mark. */
export function markedAtEnd<Part extends object>(parts: readonly Part[], message: JsonObject): Part[] {
  const cache = cacheMarkOf(message);
  const last = parts.at(-1);
  return cache === null || last === undefined ? [...parts] : [...parts.slice(0, -1), marked(last, cache)];
}
