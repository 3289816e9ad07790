import { isObject, listOf, textOf, textOrNull } from '../wire/json.js';

/*
 * A web search that the upstream itself runs: what a client requests, and what an answer reports.
 */

/** Approximate location of the user. Null: not given by the client. */
interface SearchLocation {
  readonly city: string | null;
  readonly region: string | null;
  /** Two-letter code. */
  readonly country: string | null;
  readonly timezone: string | null;
}

/** A declared search. Settings that the client did not make are empty or null. */
export interface WebSearch {
  /** Type of the tool as the client wrote it. */
  readonly type: string;
  readonly at: string;
  /** Whether the model must search. */
  readonly forced: boolean;
  /** Only pages of these domains. If empty, all domains but `blockedDomains`. */
  readonly allowedDomains: readonly string[];
  readonly blockedDomains: readonly string[];
  readonly location: SearchLocation | null;
  /** Maximum number of searches per call. */
  readonly maxUses: number | null;
  /** How much of the results the model reads: `low`, `medium`, `high`. */
  readonly contextSize: string | null;
  /** False if pages may only be from the vendor's cache. */
  readonly live: boolean;
}

/** Settings that not every protocol can express. */
export const searchSettings = [
  'allowedDomains',
  'blockedDomains',
  'location',
  'maxUses',
  'contextSize',
  'live',
] as const;
export type SearchSetting = (typeof searchSettings)[number];

/** A page that a search found. */
export interface SearchResult {
  readonly url: string;
  /** Empty if the upstream does not report it. */
  readonly title: string;
}

/** A search that the upstream ran. */
export interface SearchPart {
  readonly kind: 'search';
  /** The search terms. Empty if the upstream does not report them. */
  readonly query: string;
  readonly results: readonly SearchResult[];
}

/** Makes a declared search without settings. */
export function plainSearch(type: string, at: string): WebSearch {
  return {
    type,
    at,
    forced: false,
    allowedDomains: [],
    blockedDomains: [],
    location: null,
    maxUses: null,
    contextSize: null,
    live: true,
  };
}

/** Reads a list of texts: domains or search terms. */
export function textsIn(value: unknown): string[] {
  return listOf(value).filter((each) => typeof each === 'string' && each !== '') as string[];
}

/** Reads a list of pages. */
export function resultsIn(value: unknown): SearchResult[] {
  return listOf(value).flatMap((result) => {
    const url = isObject(result) ? textOrNull(result.url) : null;
    return isObject(result) && url !== null ? [{ url, title: textOf(result.title) }] : [];
  });
}

/** Reads the members of a location, which have the same names in every protocol. Null if none is set. */
export function locationIn(value: unknown): SearchLocation | null {
  if (!isObject(value)) return null;
  const location = {
    city: textOrNull(value.city),
    region: textOrNull(value.region),
    country: textOrNull(value.country),
    timezone: textOrNull(value.timezone),
  };
  return Object.values(location).some((each) => each !== null) ? location : null;
}

/** Returns the members of a location that are set. */
export function setMembersOf(location: SearchLocation): Record<string, string> {
  const said: Record<string, string> = {};
  for (const [name, value] of Object.entries(location)) if (value !== null) said[name] = value;
  return said;
}

/** Returns the number of characters of text in a search. */
export function charactersOf({ query, results }: SearchPart): number {
  let characters = query.length;
  for (const { url, title } of results) characters += url.length + title.length;
  return characters;
}
