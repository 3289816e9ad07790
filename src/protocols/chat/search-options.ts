import { locationIn, plainSearch, setMembersOf, type WebSearch } from '../../conversation/web-search.js';
import { isObject, type JsonObject, textOrNull } from '../../wire/json.js';

/*
 * Web search as a setting of this protocol. Models that take it search before every answer
 * (https://developers.openai.com/api/docs/guides/tools-web-search).
 */

const name = 'web_search_options';

/** @returns undefined if the body does not request a search */
export function decodeSearch({ web_search_options: options }: JsonObject): WebSearch | undefined {
  if (!isObject(options)) return undefined;
  const { user_location: place } = options;
  return {
    ...plainSearch(name, name),
    location: locationIn(isObject(place) ? (place.approximate ?? place) : null),
    contextSize: textOrNull(options.search_context_size),
  };
}

export function encodeSearch({ location, contextSize }: WebSearch): JsonObject {
  return {
    search_context_size: contextSize ?? undefined,
    user_location:
      location === null ? undefined : { type: 'approximate', approximate: setMembersOf(location) },
  };
}
