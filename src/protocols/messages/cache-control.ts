import type { Cacheable, CacheMark } from '../../conversation/request.js';
import type { JsonObject } from '../../wire/json.js';

/** The value of `cache_control`; undefined for what bears no mark. */
export function cacheControl(cache: CacheMark | null | undefined): JsonObject | undefined {
  if (!cache) return undefined;
  return cache.ttl === null ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: cache.ttl };
}

/**
 * Writes the mark of a part into its block.
 * @param block JSON text of an object
 */
export function withCacheControl(block: string, { cache }: Cacheable): string {
  const control = cacheControl(cache);
  return control === undefined ? block : `${block.slice(0, -1)},"cache_control":${JSON.stringify(control)}}`;
}
