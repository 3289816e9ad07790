import type { TokenLogprob, UrlCitation } from '../../conversation/answer.js';
import { isObject, listOf } from '../../wire/json.js';
import { citationIn, logprobsIn } from '../openai-shared/text-details.js';

/** Reads the URL citations in the `annotations` of a message or delta. Returns an empty list for anything else. */
export function decodeCitations(annotations: unknown): UrlCitation[] {
  return listOf(annotations).flatMap(
    (annotation) => (isObject(annotation) ? citationIn(annotation.url_citation) : null) ?? [],
  );
}

/**
 * Writes one entry of `annotations`.
 * @param offset length, in characters, of the message's text before the cited text
 */
export function encodeCitation(citation: UrlCitation, offset: number): string {
  const places = `"start_index":${citation.start + offset},"end_index":${citation.end + offset}`;
  const source = `"url":${JSON.stringify(citation.url)},"title":${JSON.stringify(citation.title)}`;
  return `{"type":"url_citation","url_citation":{${places},${source}}}`;
}

/** Reads the `logprobs` of a choice; undefined if it has none for the text. */
export function decodeLogprobs(logprobs: unknown): TokenLogprob[] | undefined {
  return isObject(logprobs) ? logprobsIn(logprobs.content) : undefined;
}

/** Writes the `logprobs` of a choice. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): string {
  return `{"content":${JSON.stringify(tokens)},"refusal":null}`;
}
