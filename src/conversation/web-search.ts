import { isObject, listOf, textOf, textOrNull } from '../wire/json.js';

/*
 * A search of the web that the upstream runs itself: what a client says of it, and what an answer tells of it.
 */

/** About where the user is; null for what the client did not say. */
interface SearchLocation {
  readonly city: string | null;
  readonly region: string | null;
  /** Two letters. */
  readonly country: string | null;
  readonly timezone: string | null;
}

/** A declared search. Settings that the client did not make are empty or null. */
export interface WebSearch {
  /** The tool's type as the client spells it, and where it stands in the body. */
  readonly type: string;
  readonly at: string;
  /** The model has to search. */
  readonly forced: boolean;
  /** Pages of these alone; else of all but `blockedDomains`. */
  readonly allowedDomains: readonly string[];
  readonly blockedDomains: readonly string[];
  readonly location: SearchLocation | null;
  /** Most searches of one call. */
  readonly maxUses: number | null;
  /** How much of what is found the model reads: `low`, `medium`, `high`. */
  readonly contextSize: string | null;
  /** False where pages may come from the vendor's cache alone. */
  readonly live: boolean;
}

/** Settings that not every protocol can say. */
export const searchSettings = [
  'allowedDomains',
  'blockedDomains',
  'location',
  'maxUses',
  'contextSize',
  'live',
] as const;
export type SearchSetting = (typeof searchSettings)[number];

/** A page that a search has found. */
export interface SearchResult {
  readonly url: string;
  /** Empty where the upstream does not say it. */
  readonly title: string;
}

/** A search that the upstream ran. */
export interface SearchPart {
  readonly kind: 'search';
  /** What was searched for; empty where the upstream does not say it. */
  readonly query: string;
  readonly results: readonly SearchResult[];
}

/** A declared search without any setting. */
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

/** Reads a list of texts: domains, or what was searched for. */
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

/** Reads the members of a location, which have the same names in every protocol; null where none of them is set. */
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

/** The members of a location that are set. */
export function saidOf(location: SearchLocation): Record<string, string> {
  const said: Record<string, string> = {};
  for (const [name, value] of Object.entries(location)) if (value !== null) said[name] = value;
  return said;
}

/** How much of a search is text. */
export function charactersOf({ query, results }: SearchPart): number {
  let characters = query.length;
  for (const { url, title } of results) characters += url.length + title.length;
  return characters;
}
