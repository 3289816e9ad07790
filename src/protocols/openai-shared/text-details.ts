import type { TokenLogprob, UrlCitation } from '../../conversation/answer.js';
import { countOf, isList, isObject, listOf, numberOrNull, objectOf, textOf } from '../../wire/json.js';

/** Returns the source of a URL citation, or null for anything else. */
export function citationIn(cited: unknown): UrlCitation | null {
  if (!isObject(cited) || typeof cited.url !== 'string') return null;
  return {
    start: countOf(cited.start_index),
    end: countOf(cited.end_index),
    url: cited.url,
    title: textOf(cited.title),
  };
}

/** Returns the log probabilities of a text; undefined if there are none. Incomplete entries are left out. */
export function logprobsIn(list: unknown): TokenLogprob[] | undefined {
  const found = listOf(list).flatMap((each) => {
    const token = tokenIn(each);
    if (token === null || !isObject(each)) return [];
    const top = listOf(each.top_logprobs).map(tokenIn);
    return [{ ...token, top_logprobs: top.filter((other) => other !== null) }];
  });
  return found.length === 0 ? undefined : found;
}

function tokenIn(value: unknown): Omit<TokenLogprob, 'top_logprobs'> | null {
  const { token, logprob: given, bytes } = objectOf(value);
  const logprob = numberOrNull(given);
  if (typeof token !== 'string' || logprob === null) return null;
  return { token, logprob, bytes: isList(bytes) && bytes.every(isNumber) ? bytes : null };
}

function isNumber(value: unknown): value is number {
  return numberOrNull(value) !== null;
}
