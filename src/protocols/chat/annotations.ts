import type { TokenLogprob, UrlCitation } from '../../conversation/answer.js';
import {
  isList,
  isObject,
  type JsonObject,
  listOf,
  numberOrNull,
  placeOf,
  textOrNull,
} from '../../wire/json.js';

/** Reads the URL citations among the `annotations` of a message or delta; empty for anything else. */
export function decodeCitations(annotations: unknown): UrlCitation[] {
  const citations: UrlCitation[] = [];
  for (const annotation of listOf(annotations)) {
    const cited = isObject(annotation) ? annotation.url_citation : null;
    if (!isObject(cited) || typeof cited.url !== 'string') continue;
    citations.push({
      start: placeOf(cited.start_index),
      end: placeOf(cited.end_index),
      url: cited.url,
      title: textOrNull(cited.title) ?? '',
    });
  }
  return citations;
}

/**
 * Writes one entry of `annotations`.
 * @param offset characters of the message before the text that the citation belongs to
 */
export function encodeCitation(citation: UrlCitation, offset: number): string {
  const places = `"start_index":${citation.start + offset},"end_index":${citation.end + offset}`;
  const source = `"url":${JSON.stringify(citation.url)},"title":${JSON.stringify(citation.title)}`;
  return `{"type":"url_citation","url_citation":{${places},${source}}}`;
}

/** Reads `logprobs` of a choice; null when it has none for the text. Entries that are not whole are left out. */
export function decodeLogprobs(logprobs: unknown): TokenLogprob[] | null {
  if (!isObject(logprobs)) return null;
  const tokens: TokenLogprob[] = [];
  for (const entry of listOf(logprobs.content)) {
    if (!isObject(entry)) continue;
    const token = plainLogprob(entry);
    if (token === null) continue;
    const alternatives = listOf(entry.top_logprobs).map((each) =>
      isObject(each) ? plainLogprob(each) : null,
    );
    tokens.push({ ...token, top_logprobs: alternatives.filter((each) => each !== null) });
  }
  return tokens.length > 0 ? tokens : null;
}

function plainLogprob(entry: JsonObject): Omit<TokenLogprob, 'top_logprobs'> | null {
  const { token, bytes } = entry;
  const logprob = numberOrNull(entry.logprob);
  if (typeof token !== 'string' || logprob === null) return null;
  return { token, logprob, bytes: isList(bytes) && bytes.every(isNumber) ? bytes : null };
}

function isNumber(value: unknown): value is number {
  return numberOrNull(value) !== null;
}

/** Writes the `logprobs` of a choice. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): string {
  return `{"content":${JSON.stringify(tokens)},"refusal":null}`;
}
