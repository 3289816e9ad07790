import {
  locationIn,
  plainSearch,
  setMembersOf,
  textsIn,
  type WebSearch,
} from '../../conversation/web-search.js';
import { isObject, type JsonObject, objectOf, textOrNull } from '../../wire/json.js';

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
