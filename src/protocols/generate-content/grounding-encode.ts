import type { UrlCitation } from '../../conversation/answer.js';
import type { LeftOut } from '../../conversation/left-out.js';
import type { SearchPart, SearchResult } from '../../conversation/web-search.js';
import { entryOf } from '../../wire/entry-of.js';
import { plainText } from '../../wire/raw-text.js';
import { Utf8Offsets } from '../../wire/utf8-offsets.js';

/** Most citations, and most results, of one candidate that are written. */
const most = 1000;
/** Most characters of addresses, titles and queries of one candidate that are written. */
const longestSources = 1024 * 1024;
/** Most characters of a candidate's text that are kept to find positions in it, and most that are quoted in total. */
const longestText = 256 * 1024;

/** Collects the `groundingMetadata` of one candidate; see `GroundingReader`. */
export class GroundingWriter {
  readonly #lost: LeftOut;
  /** Null if no text is kept: positions in it are then unknown. */
  #text: string | null;
  /** Raw text that follows `#text`. */
  #rawText = '';
  readonly #queries = new Set<string>();
  readonly #results = new Map<string, SearchResult>();
  readonly #citations: UrlCitation[] = [];
  #sourceCharacters = 0;

  /** @param keepsText citations may follow */
  constructor(keepsText: boolean, lost: LeftOut) {
    this.#text = keepsText ? '' : null;
    this.#lost = lost;
  }

  addText(text: string): void {
    this.#decodeRawText();
    if (this.#text === null) return;
    this.#text = this.#text.length + text.length > longestText ? null : this.#text + text;
  }

  /** @param raw see `raw-text.ts` */
  addRawText(raw: string): void {
    if (this.#text === null) return;
    this.#rawText += raw;
    if (this.#text.length + this.#rawText.length > longestText) this.#text = null;
  }

  /** Decodes the text that was passed on raw. */
  #decodeRawText(): void {
    if (this.#rawText !== '' && this.#text !== null) this.#text += plainText(this.#rawText);
    this.#rawText = '';
  }

  addSearch({ query, results }: SearchPart): void {
    if (query !== '' && this.#queries.size < most && this.#hasRoom(query.length)) this.#queries.add(query);
    for (const result of results) this.#addResult(result);
  }

  /** @param citation with its position in the text of the candidate */
  addCitation({ start, end, ...source }: UrlCitation): void {
    const told = this.#addResult(source);
    if (told !== null && this.#citations.length < most) this.#citations.push({ start, end, ...told });
    else this.#lost.add('citations');
  }

  /** @returns the source as it is written, or null if there are too many or they are too long */
  #addResult({ url, title }: SearchResult): SearchResult | null {
    const known = this.#results.get(url) ?? null;
    if (known !== null && (known.title !== '' || title === '')) return known;
    const isFull = known === null && this.#results.size >= most;
    if (isFull || !this.#hasRoom(title.length + (known === null ? url.length : 0))) return known;
    const told = { url: known?.url ?? url, title };
    this.#results.set(told.url, told);
    return told;
  }

  #hasRoom(characters: number): boolean {
    if (this.#sourceCharacters + characters > longestSources) return false;
    this.#sourceCharacters += characters;
    return true;
  }

  /** Returns the member with its comma; empty without any sources or searches. */
  text(): string {
    if (this.#queries.size === 0 && this.#results.size === 0) return '';
    const chunks = [...this.#results.values()].map(
      ({ url, title }) => `{"web":{"uri":${JSON.stringify(url)},"title":${JSON.stringify(title || url)}}}`,
    );
    const queries = `"webSearchQueries":${JSON.stringify([...this.#queries])}`;
    return `,"groundingMetadata":{${queries},"groundingChunks":[${chunks.join()}]${this.#supports()}}`;
  }

  #supports(): string {
    if (this.#citations.length === 0) return '';
    this.#decodeRawText();
    const text = this.#text;
    if (text === null) {
      this.#lost.add('citations');
      return '';
    }
    const offsets = new Utf8Offsets();
    offsets.add(text);
    const numbers = new Map([...this.#results.keys()].map((url, index) => [url, index]));
    let quoted = 0;
    const supports = placesOf(this.#citations).map(({ start, end, urls }) => {
      const words = text.slice(start, end);
      const isQuoted = quoted + words.length <= longestText;
      if (isQuoted) quoted += words.length;
      else this.#lost.add('citations');
      const places = `"startIndex":${offsets.toByte(start)},"endIndex":${offsets.toByte(end)}`;
      const segment = isQuoted ? `{${places},"text":${JSON.stringify(words)}}` : `{${places}}`;
      const indices = urls.map((url) => numbers.get(url)).filter((index) => index !== undefined);
      return `{"segment":${segment},"groundingChunkIndices":[${indices.join()}]}`;
    });
    return `,"groundingSupports":[${supports.join()}]`;
  }
}

interface CitedPlace {
  readonly start: number;
  readonly end: number;
  readonly urls: string[];
}

/** Returns each position once, with all of its sources. */
function placesOf(citations: readonly UrlCitation[]): CitedPlace[] {
  const places = new Map<string, CitedPlace>();
  for (const { start, end, url } of citations) {
    const { urls } = entryOf(places, `${start} ${end}`, () => ({ start, end, urls: [] }));
    if (!urls.includes(url)) urls.push(url);
  }
  return [...places.values()];
}
