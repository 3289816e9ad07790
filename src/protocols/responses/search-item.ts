import { resultsIn, type SearchPart, textsIn } from '../../conversation/web-search.js';
import { isObject, type JsonObject, objectOf, textOf } from '../../wire/json.js';
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
 * billed.
 */
export function reportedSearches(toolUsage: unknown): number | null {
  const { num_requests: told } = objectOf(objectOf(toolUsage).web_search);
  return Number.isSafeInteger(told) ? Math.max(0, Number(told)) : null;
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
