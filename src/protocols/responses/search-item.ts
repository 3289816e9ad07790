import {
  locationIn,
  plainSearch,
  resultsIn,
  type SearchPart,
  setMembersOf,
  textsIn,
  type WebSearch,
} from '../../conversation/web-search.js';
import { isObject, type JsonObject, objectOf, textOf, textOrNull } from '../../wire/json.js';
import type { EventWriter } from './event-writer.js';

/* Web searches as items of an answer (https://developers.openai.com/api/docs/guides/tools-web-search). */

/** Most queries of one item that become searches. The others are left out. */
const mostQueries = 16;

/** Tells whether an item is a search. The vendor charges each item as one search, however many queries it has. */
export function isSearch(item: unknown): boolean {
  return isObject(item) && item.type === 'web_search_call' && searchesOf(item).length > 0;
}

/**
 * Returns the number of searches that the vendor bills, or null if it does not report one: not every search item is
 * billed. Some servers report none whatever has been searched, so zero says nothing.
 */
export function reportedSearches(toolUsage: unknown): number | null {
  const { num_requests: told } = objectOf(objectOf(toolUsage).web_search);
  return Number.isSafeInteger(told) && Number(told) > 0 ? Number(told) : null;
}

/**
 * Returns the searches of a `web_search_call`, one for each query. A page that was opened or searched gives none, since
 * other protocols have no equivalent.
 */
export function searchesOf({ action }: JsonObject): SearchPart[] {
  if (!isObject(action) || (action.type ?? 'search') !== 'search') return [];
  const queries = textsIn(action.queries).slice(0, mostQueries);
  const [query = textOf(action.query), ...more] = queries;
  const searches = [query, ...more].map((each): SearchPart => ({ kind: 'search', query: each, results: [] }));
  // The item does not say which query found which page, so the last search gets all of them.
  const last = searches.pop() as SearchPart;
  return [...searches, { ...last, results: resultsIn(action.sources) }];
}

export function searchItem(
  id: string,
  status: 'in_progress' | 'completed',
  { query, results }: SearchPart,
): string {
  const sources = results.map(({ url }) => `{"type":"url","url":${JSON.stringify(url)}}`);
  const found = sources.length === 0 ? '' : `,"sources":[${sources.join()}]`;
  const asked = JSON.stringify(query);
  const action = `{"type":"search","query":${asked},"queries":[${query === '' ? '' : asked}]${found}}`;
  return `{"id":"${id}","type":"web_search_call","status":"${status}","action":${action}}`;
}

/** Writes the events of a finished search. */
export function writeSearch(writer: EventWriter, id: string, search: SearchPart): string {
  const step = (name: string): string =>
    writer.event(`response.web_search_call.${name}`, `,"item_id":"${id}","output_index":${writer.index}`);
  return (
    writer.added(searchItem(id, 'in_progress', { ...search, results: [] })) +
    step('in_progress') +
    step('searching') +
    step('completed') +
    writer.done(searchItem(id, 'completed', search))
  );
}

/* Web search as a tool of this protocol: https://developers.openai.com/api/docs/guides/tools-web-search */

/**
 * Tells whether a type is one of the search's, with or without a date: `web_search`, `web_search_2025_08_26`,
 * `web_search_preview`, …
 */
export function isSearchTool(type: unknown): boolean {
  return typeof type === 'string' && /^web_search(?:_preview)?(?:_\d{4}_\d{2}_\d{2})?$/.test(type);
}

/** @param choice the body's `tool_choice` */
export function decodeSearch(tool: JsonObject, at: string, choice: unknown): WebSearch {
  const filters = objectOf(tool.filters);
  return {
    ...plainSearch(String(tool.type), at),
    forced: isObject(choice) && isSearchTool(choice.type),
    allowedDomains: textsIn(filters.allowed_domains),
    blockedDomains: textsIn(filters.blocked_domains),
    location: locationIn(tool.user_location),
    contextSize: textOrNull(tool.search_context_size),
    live: tool.external_web_access !== false,
  };
}

/** Returns the JSON text of the tool. The limit of its uses is a setting of the body: `max_tool_calls`. */
export function encodeSearch({ allowedDomains, location, contextSize, live }: WebSearch): string {
  return JSON.stringify({
    type: 'web_search',
    filters: allowedDomains.length > 0 ? { allowed_domains: allowedDomains } : undefined,
    user_location: location === null ? undefined : { type: 'approximate', ...setMembersOf(location) },
    search_context_size: contextSize ?? undefined,
    external_web_access: live ? undefined : false,
  });
}

/** Value of `include` that requests the pages that a search has found. */
export const includedSources = 'web_search_call.action.sources';
