import type { AnswerSource } from '../../conversation/codec.js';
import type { StreamEvent } from '../../conversation/events.js';
import { resultsIn, type SearchResult } from '../../conversation/web-search.js';
import { type JsonObject, parseObject } from '../../wire/json.js';
import { isSearchCall, queryOf, sourceOf } from './search-blocks.js';
import { nameOfBlock } from './server-blocks.js';

/** Longest input of a search that is kept, in characters. */
const longestInput = 64 * 1024;
/** So many searches may be under way. */
const mostOpen = 64;
/** So many citations of one text are told. */
const mostCitations = 1000;
/** So many characters of their addresses and titles wait for the text's end. */
const longestCited = 1024 * 1024;

/** A call of the search whose input is coming. */
interface OpenSearch {
  /** Index of its block. */
  readonly index: unknown;
  readonly query: string;
  input: string;
}

/** Reads the searches in a stream, and the citations of its texts, whose places are known when their block ends. */
export class SearchReader {
  /** Length of the answer's text so far. */
  textLength = 0;
  readonly #source: AnswerSource;
  /** Those that have no result yet, by their ids. */
  readonly #open = new Map<unknown, OpenSearch>();
  #textStart = 0;
  #cited: SearchResult[] = [];
  #citedCharacters = 0;

  constructor(source: AnswerSource) {
    this.#source = source;
  }

  /** A block of none of the types that every conversation may have. */
  blockStart(block: JsonObject, index: unknown, out: StreamEvent[]): void {
    if (isSearchCall(block)) {
      const query = queryOf(block.input);
      const isShort = typeof block.id === 'string' && block.id.length + query.length <= longestInput;
      if (isShort && this.#open.size < mostOpen) this.#open.set(block.id, { index, query, input: '' });
    } else if (block.type === 'web_search_tool_result') {
      const search = this.#open.get(block.tool_use_id);
      const query = search === undefined ? '' : queryIn(search);
      this.#open.delete(block.tool_use_id);
      out.push({ kind: 'search', choice: 0, query, results: resultsIn(block.content) });
    } else if (typeof block.type === 'string') {
      this.#source.lost?.add(nameOfBlock(block.type));
    }
  }

  /** Takes a piece of the input of a tool that the upstream runs. */
  input(index: unknown, piece: string): void {
    for (const search of this.#open.values())
      if (search.index === index && search.input.length + piece.length <= longestInput) search.input += piece;
  }

  textStart(): void {
    this.#textStart = this.textLength;
    this.#drop();
  }

  /** Takes a citation of the open text. Without a search nobody knows how long that is. */
  cite(citation: unknown): void {
    const source = this.#source.searches === true ? sourceOf(citation) : null;
    const length = source === null ? 0 : source.url.length + source.title.length;
    if (
      source === null ||
      this.#cited.length >= mostCitations ||
      this.#citedCharacters + length > longestCited
    ) {
      this.#source.lost?.add('citations');
      return;
    }
    this.#cited.push(source);
    this.#citedCharacters += length;
  }

  textEnd(out: StreamEvent[]): void {
    for (const { url, title } of this.#cited)
      out.push({
        kind: 'citation',
        choice: 0,
        citation: { start: this.#textStart, end: this.textLength, url, title },
      });
    this.#drop();
  }

  #drop(): void {
    this.#cited = [];
    this.#citedCharacters = 0;
  }
}

function queryIn({ query, input }: OpenSearch): string {
  return queryOf(parseObject(input)) || query;
}
