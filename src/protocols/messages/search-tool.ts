import {
  locationIn,
  plainSearch,
  setMembersOf,
  textsIn,
  type WebSearch,
} from '../../conversation/web-search.js';
import { isObject, type JsonObject, numberOrNull } from '../../wire/json.js';

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
