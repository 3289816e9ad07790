import { resultsIn, type SearchPart, textsIn } from '../../conversation/web-search.js';
import { isObject, type JsonObject, objectOf, textOf } from '../../wire/json.js';
import type { EventWriter } from './event-writer.js';

/*
 * Searches of the web as items of an answer (https://developers.openai.com/api/docs/guides/tools-web-search).
 */

/** Of one item at most so many queries become searches; the others are left out. */
const mostQueries = 16;

/** An item of a search that the vendor charges as one, whatever the number of its queries. */
export function isSearch(item: unknown): boolean {
  return isObject(item) && item.type === 'web_search_call' && searchesOf(item).length > 0;
}

/** How many searches the vendor says it bills, null where it does not: not every item of a search is billed as one. */
export function toldSearches(toolUsage: unknown): number | null {
  const { num_requests: told } = objectOf(objectOf(toolUsage).web_search);
  return Number.isSafeInteger(told) ? Math.max(0, Number(told)) : null;
}

/**
 * The searches of a `web_search_call`: one for each query. None for a page that was opened, or looked through: other
 * protocols have nothing of the kind.
 */
export function searchesOf({ action }: JsonObject): SearchPart[] {
  if (!isObject(action) || (action.type ?? 'search') !== 'search') return [];
  const queries = textsIn(action.queries).slice(0, mostQueries);
  const [query = textOf(action.query), ...more] = queries;
  const searches = [query, ...more].map((each): SearchPart => ({ kind: 'search', query: each, results: [] }));
  // Nothing says which of the pages was found by which query, so the last one has them all.
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

/** The events of a search that is over. */
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
