import type { UrlCitation } from '../../conversation/answer.js';
import { searchToken } from '../../conversation/signature.js';
import type { SearchPart, SearchResult } from '../../conversation/web-search.js';
import { isObject, type JsonObject, textOf, textOrNull } from '../../wire/json.js';
import { needleOf } from '../../wire/json-skip.js';

/*
 * Searches and their sources as blocks of an answer: the upstream's call of its own tool, what it found, and citations on
 * texts (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool).
 *
 * Clients want members that only the vendor can read. What this gateway writes in them is a token, by which
 * `restore.ts` knows what no upstream may get.
 */

export function isSearchCall({ type, name }: JsonObject): boolean {
  return type === 'server_tool_use' && name === 'web_search';
}

/** What a call of the search asks for. @param input the call's input, parsed */
export function queryOf(input: unknown): string {
  return isObject(input) ? textOf(input.query) : '';
}

/** The source that a citation names, or null for one of another type: of documents, which are not translated. */
export function sourceOf(citation: unknown): SearchResult | null {
  if (!isObject(citation) || citation.type !== 'web_search_result_location') return null;
  const url = textOrNull(citation.url);
  return url === null ? null : { url, title: textOf(citation.title) };
}

const ownId = 'srvtoolu_gw1_';
/** What a body must hold for such an id to be in it. */
export const ownSearchMark = needleOf(`"${ownId}`);
const caller = '"caller":{"type":"direct"}';

/** @param number of the search in its answer, from 0 */
export function searchId(answer: string, number: number): string {
  return `${ownId}${answer}_${number}`;
}

export function isOwnSearchId(id: unknown): boolean {
  return typeof id === 'string' && id.startsWith(ownId);
}

/** The block of a call of the search. @param query null while its input is not written */
export function callBlock(id: string, query: string | null): string {
  const input = query === null ? '{}' : queryText(query);
  return `{"type":"server_tool_use","id":"${id}","name":"web_search","input":${input},${caller}}`;
}

/** JSON text of a call's input. */
export function queryText(query: string): string {
  return `{"query":${JSON.stringify(query)}}`;
}

/** The block of what a search has found. */
export function resultBlock(id: string, { results }: SearchPart): string {
  const content = results.map(
    ({ url, title }) =>
      `{"type":"web_search_result","title":${JSON.stringify(title || url)},"url":${JSON.stringify(url)},` +
      `"encrypted_content":"${searchToken}","page_age":null}`,
  );
  return `{"type":"web_search_tool_result","tool_use_id":"${id}","content":[${content.join()}],${caller}}`;
}

/** A citation on a text. The words of the source are not known. */
export function citationText({ url, title }: UrlCitation): string {
  return (
    `{"type":"web_search_result_location","url":${JSON.stringify(url)},"title":${JSON.stringify(title)},` +
    `"encrypted_index":"${searchToken}","cited_text":""}`
  );
}
