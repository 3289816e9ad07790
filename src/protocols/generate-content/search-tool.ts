import { plainSearch, textsIn, type WebSearch } from '../../conversation/web-search.js';
import { isObject } from '../../wire/json.js';
import { memberOf, snakeCase } from './spelling.js';

/*
 * The search of the web as a tool of this protocol (https://ai.google.dev/gemini-api/docs/google-search). Models before
 * Gemini 3 refuse it beside functions and beside JSON answers; later ones take both, but want to be told that what the
 * vendor ran may be told, which Vertex AI does not know.
 */

const keys = ['googleSearch', 'googleSearchRetrieval'].flatMap((name) => [name, snakeCase(name)]);

/** Whether a member of a tool is the search, by either of its names, or the one that it had for older models. */
export function isSearchTool(key: string): boolean {
  return keys.includes(key);
}

/** @param key the tool's member, for which see `isSearchTool` */
export function decodeSearch(key: string, value: unknown, at: string): WebSearch {
  const excluded = isObject(value) ? memberOf(value, 'excludeDomains') : null;
  return { ...plainSearch(key, at), blockedDomains: textsIn(excluded) };
}
