import type { CacheMark } from '../../conversation/request.js';
import { isObject, type JsonObject } from '../../wire/json.js';

/*
 * OpenAI's mark of the part of a prompt to keep in its prompt cache. GPT-5.6 and later models take it on texts, images,
 * files and sound of all messages but the assistant's, and not on tools or `instructions`. A request writes at most four
 * of them. Source: https://developers.openai.com/api/docs/guides/prompt-caching
 */

/**
 * Reads the mark. It may have a minimum time, `30m` or `12h`; the longest that other vendors keep one is an hour.
 */
export function breakpointOf({ prompt_cache_breakpoint: mark }: JsonObject): CacheMark | null {
  if (!isObject(mark) || mark.mode !== 'explicit') return null;
  const name = 'prompt_cache_breakpoint';
  return typeof mark.ttl === 'string' ? { ttl: '1h', name, minimum: mark.ttl } : { ttl: null, name };
}

/**
 * Returns a part with a mark.
 * @param part JSON text of an object
 * @param cache of another vendor's client: its time is not sent, since the times that a model takes depend on the API
 */
export function withBreakpoint(part: string, cache: CacheMark | null | undefined): string {
  if (!cache) return part;
  const ttl = cache.minimum === undefined ? '' : `,"ttl":${JSON.stringify(cache.minimum)}`;
  return `${part.slice(0, -1)},"prompt_cache_breakpoint":{"mode":"explicit"${ttl}}}`;
}

/**
 * Returns the texts of a system prompt as the texts of parts, each of which but the last has a mark. Their texts
 * together are those of a prompt without marks.
 */
export function systemParts(
  system: readonly string[],
  marks: readonly (CacheMark | null)[] = [],
): readonly { readonly text: string; readonly cache: CacheMark | null }[] {
  const parts: { text: string; cache: CacheMark | null }[] = [];
  for (const [index, text] of system.entries()) {
    const last = parts.at(-1);
    const cache = marks[index] ?? null;
    const behind = index === 0 ? text : `\n\n${text}`;
    if (last === undefined || last.cache !== null) parts.push({ text: behind, cache });
    else {
      last.text += behind;
      last.cache = cache;
    }
  }
  return parts;
}
