import type { UrlCitation } from '../../conversation/answer.js';
import { searchToken } from '../../conversation/signature.js';
import {
  locationIn,
  plainSearch,
  type SearchPart,
  type SearchResult,
  setMembersOf,
  textsIn,
  type WebSearch,
} from '../../conversation/web-search.js';
import { isObject, type JsonObject, numberOrNull, textOf, textOrNull } from '../../wire/json.js';
import { needleOf } from '../../wire/json-skip.js';

/*
 * Searches and their sources as blocks of an answer: the upstream's call of its own tool, its results, and citations on
 * texts (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool). Clients require members that
 * only the vendor can read. The gateway writes a token in them, by which `restore` of `index.ts` recognises what no
 * upstream may get.
 */

export function isSearchCall({ type, name }: JsonObject): boolean {
  return type === 'server_tool_use' && name === 'web_search';
}

/**
 * Returns the query of a search.
 * @param input the parsed input of the call
 */
export function queryOf(input: unknown): string {
  return isObject(input) ? textOf(input.query) : '';
}

/** Returns the source of a citation, or null for a citation of another type: those of documents are not translated. */
export function sourceOf(citation: unknown): SearchResult | null {
  if (!isObject(citation) || citation.type !== 'web_search_result_location') return null;
  const url = textOrNull(citation.url);
  return url === null ? null : { url, title: textOf(citation.title) };
}

const ownId = 'srvtoolu_gw1_';
/** A body without this contains no such id. */
export const ownSearchMark = needleOf(`"${ownId}`);
const caller = '"caller":{"type":"direct"}';

/** @param number the position of the search in its answer, from 0 */
export function searchId(answer: string, number: number): string {
  return `${ownId}${answer}_${number}`;
}

export function isOwnSearchId(id: unknown): boolean {
  return typeof id === 'string' && id.startsWith(ownId);
}

/**
 * Writes the block of a search's call.
 * @param query null while its input is not written
 */
export function callBlock(id: string, query: string | null): string {
  const input = query === null ? '{}' : queryText(query);
  return `{"type":"server_tool_use","id":"${id}","name":"web_search","input":${input},${caller}}`;
}

/** JSON text of a call's input. */
export function queryText(query: string): string {
  return `{"query":${JSON.stringify(query)}}`;
}

/** Writes the block with the results of a search. */
export function resultBlock(id: string, { results }: SearchPart): string {
  const content = results.map(
    ({ url, title }) =>
      `{"type":"web_search_result","title":${JSON.stringify(title || url)},"url":${JSON.stringify(url)},` +
      `"encrypted_content":"${searchToken}","page_age":null}`,
  );
  return `{"type":"web_search_tool_result","tool_use_id":"${id}","content":[${content.join()}],${caller}}`;
}

/** Writes a citation on a text. The cited words of the source are not known. */
export function citationText({ url, title }: UrlCitation): string {
  return (
    `{"type":"web_search_result_location","url":${JSON.stringify(url)},"title":${JSON.stringify(title)},` +
    `"encrypted_index":"${searchToken}","cited_text":""}`
  );
}

/*
 * Web search as a tool of this protocol. Its versions differ in what runs the search, not in these members. Every model
 * that searches takes the first version
 * (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool).
 */

const version = 'web_search_20250305';
/** The name of the tool in every version. */
export const searchName = 'web_search';

export function isSearchTool(type: unknown): boolean {
  return typeof type === 'string' && type.startsWith('web_search_');
}

/** @param choice the body's `tool_choice` */
export function decodeSearch(tool: JsonObject, at: string, choice: unknown): WebSearch {
  return {
    ...plainSearch(String(tool.type), at),
    forced: isObject(choice) && choice.name === (tool.name ?? searchName),
    allowedDomains: textsIn(tool.allowed_domains),
    blockedDomains: textsIn(tool.blocked_domains),
    location: locationIn(tool.user_location),
    maxUses: usesIn(tool.max_uses),
  };
}

/**
 * Writes the tool. `fit/web-search.ts` has left out a search with both allowed and blocked domains, which the vendor
 * refuses.
 */
export function encodeSearch({ allowedDomains, blockedDomains, location, maxUses }: WebSearch): JsonObject {
  return {
    type: version,
    name: searchName,
    max_uses: maxUses ?? undefined,
    allowed_domains: allowedDomains.length > 0 ? allowedDomains : undefined,
    blocked_domains: blockedDomains.length > 0 ? blockedDomains : undefined,
    user_location: location === null ? undefined : { type: 'approximate', ...setMembersOf(location) },
  };
}

/** Reads a number of searches. */
function usesIn(value: unknown): number | null {
  const uses = numberOrNull(value);
  return uses !== null && Number.isSafeInteger(uses) && uses > 0 ? uses : null;
}
