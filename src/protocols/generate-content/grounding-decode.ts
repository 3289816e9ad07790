import type { UrlCitation } from '../../conversation/answer.js';
import type { AnswerSource } from '../../conversation/codec.js';
import { type SearchPart, type SearchResult, textsIn } from '../../conversation/web-search.js';
import { countOf, isObject, type JsonObject, listOf, objectOf, textOf, textOrNull } from '../../wire/json.js';
import { Utf8Offsets } from '../../wire/utf8-offsets.js';

/*
 * Reads the search of an upstream: `groundingMetadata` of a candidate
 * (https://ai.google.dev/api/generate-content#GroundingMetadata). Its positions are bytes of UTF-8 in a part.
 */

/** Most citations, results and queries of one candidate that are reported. */
const most = 1000;
/** Most characters of a candidate's text that are kept to find positions in it. */
const longestText = 256 * 1024;
/** Most characters of it that are searched for the words of all citations: each search takes as long as the text. */
const mostSearched = 16 * longestText;
/**
 * Only the beginning of the words is searched for: with longer ones, an engine may compare at every position of the
 * text.
 */
const soughtBeginning = 200;

/** Reads the grounding of one candidate, whole or in chunks. */
export class GroundingReader {
  readonly #source: AnswerSource;
  readonly #offsets = new Utf8Offsets();
  #text = '';
  /** Offsets of its parts, in bytes of its text; only for a whole candidate. */
  readonly #starts: number[] = [];
  /** Citations that were reported: chunks of a stream repeat them. */
  readonly #told = new Set<string>();
  readonly #queries = new Set<string>();
  readonly #results = new Map<string, SearchResult>();
  #hasSearched = false;
  /** Characters that were searched for words. */
  #searched = 0;

  constructor(source: AnswerSource) {
    this.#source = source;
  }

  /** Adds text that follows. */
  addText(text: string): void {
    if (!this.#source.searches || this.#text.length + text.length > longestText) return;
    this.#text += text;
    this.#offsets.add(text);
  }

  /**
   * Adds the next part of a whole candidate.
   * @param text empty for a part that is not text of the answer
   */
  addPart(text: string): void {
    this.#starts.push(this.#offsets.byteLength);
    this.addText(text);
  }

  /** @returns citations that have not been reported, with their positions in the text */
  read(metadata: unknown): UrlCitation[] {
    if (!isObject(metadata)) return [];
    const chunks = listOf(metadata.groundingChunks).map(sourceOf);
    for (const query of queriesOf(metadata)) if (this.#queries.size < most) this.#queries.add(query);
    for (const result of chunks)
      if (result !== null && this.#results.size < most) this.#results.set(result.url, result);
    if (chunks.includes(null)) this.#source.lost.add('groundingChunks');
    this.#hasSearched ||= this.#queries.size > 0 || this.#results.size > 0;
    const supports = listOf(metadata.groundingSupports);
    if (supports.length > most) this.#source.lost.add('groundingSupports');
    return supports
      .slice(0, most)
      .flatMap((support) => (isObject(support) ? this.#cited(support, chunks) : []));
  }

  /** Returns the searches of the candidate. The metadata does not say which query found which page. */
  searches(): SearchPart[] {
    if (!this.#hasSearched) return [];
    const queries = this.#queries.size === 0 ? [''] : [...this.#queries];
    return queries.map((query, index) => ({
      kind: 'search',
      query,
      results: index === queries.length - 1 ? [...this.#results.values()] : [],
    }));
  }

  #cited(support: JsonObject, chunks: readonly (SearchResult | null)[]): UrlCitation[] {
    const results = listOf(support.groundingChunkIndices)
      .map((index) => (typeof index === 'number' ? chunks[index] : null))
      .filter((result) => result != null);
    if (results.length === 0) return [];
    const place = this.#placeOf(objectOf(support.segment));
    const citations: UrlCitation[] = [];
    for (const result of results) {
      if (place === null || this.#told.size >= most) {
        this.#source.lost.add('groundingSupports');
        continue;
      }
      const key = `${place.start} ${place.end} ${result.url}`;
      if (this.#told.has(key)) continue;
      this.#told.add(key);
      citations.push({ ...place, ...result });
    }
    return citations;
  }

  /**
   * Returns the position of a segment in the text, in characters. Upstreams count its bytes from the beginning of the
   * part or of the candidate. The segment's words decide which, if it has any.
   */
  #placeOf(segment: JsonObject): Pick<UrlCitation, 'start' | 'end'> | null {
    if (!this.#source.searches) return null;
    const from = countOf(segment.startIndex);
    const to = countOf(segment.endIndex);
    const words = textOrNull(segment.text);
    const bases = [this.#starts[countOf(segment.partIndex)] ?? 0, 0];
    const places = bases.map((base) => ({
      start: this.#offsets.toUnit(base + from),
      end: this.#offsets.toUnit(base + to),
    }));
    if (words === null || words === '') return places[0] ?? null;
    const fitting = places.find(({ start, end }) => this.#text.slice(start, end) === words);
    if (fitting !== undefined) return fitting;
    const start = this.#search(words);
    return start === -1 ? (places[0] ?? null) : { start, end: start + words.length };
  }

  /** Returns the position of words in the text, or -1. Returns -1, too, once the text has been searched too often. */
  #search(words: string): number {
    if (this.#searched + this.#text.length > mostSearched) return -1;
    this.#searched += this.#text.length;
    const start = this.#text.indexOf(words.slice(0, soughtBeginning));
    return start !== -1 && this.#text.startsWith(words, start) ? start : -1;
  }
}

/** Returns a page of the web, or null for a source of another kind. */
function sourceOf(chunk: unknown): SearchResult | null {
  const web = isObject(chunk) ? chunk.web : null;
  const url = isObject(web) ? textOrNull(web.uri) : null;
  return isObject(web) && url !== null ? { url, title: textOf(web.title) } : null;
}

/** Returns the searches that the metadata names: of the web and of images, which are billed alike. */
export function queriesOf(metadata: JsonObject): string[] {
  return [...textsIn(metadata.webSearchQueries), ...textsIn(metadata.imageSearchQueries)];
}
