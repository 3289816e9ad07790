import type { StreamEvent } from '../../../conversation/answer.js';
import type { AnswerSource, StreamDecoder } from '../../../conversation/codec.js';
import { isSignOfLife } from '../../../conversation/event-protocol.js';
import { endedEarly } from '../../../conversation/stream-rules.js';
import type { Usage } from '../../../conversation/usage.js';
import { resultsIn, type SearchResult } from '../../../conversation/web-search.js';
import { GatewayError } from '../../../errors.js';
import { isObject, type JsonObject, listOf, parseObject, textOf, textOrNull } from '../../../wire/json.js';
import { brokenEvent } from '../../error-formats/upstream-error.js';
import { inputText, tagMessagesSignature } from '../answer/decode.js';
import { decodeFinish } from '../answer/finish.js';
import { decodeUsage } from '../answer/usage.js';
import { isSearchCall, queryOf, sourceOf } from '../search-blocks.js';
import { nameOfBlock } from '../server-blocks.js';
import { foreignEventOf, isForeign, upstreamError } from '../upstream-error.js';

/** A call whose block is open. */
interface OpenCall {
  readonly call: number;
  /** Arguments in the event that starts the block, which some upstreams send instead of deltas. */
  readonly input: string;
  hasDeltas: boolean;
}

/** Most calls that may be open concurrently, and most characters of their initial arguments that are held. */
const mostOpenCalls = 1024;
const mostHeldInput = 32 * 1024 * 1024;

/** Reads a messages stream; see `StreamDecoder`. */
export class MessagesDecoder implements StreamDecoder {
  readonly textMember = 'text';
  readonly needsTexts: boolean;
  readonly #source: AnswerSource;
  readonly #searches: SearchReader;
  /** Open calls by the indexes of their blocks. */
  readonly #openCalls = new Map<unknown, OpenCall>();
  /** Characters of the initial arguments of open calls. */
  #heldInput = 0;
  #calls = 0;
  #usage: Usage | null = null;
  /** An event after the first one has reported the usage. */
  #isCounted = false;
  #isStarted = false;
  /** The open block is thinking that returns to its model even without a signature, and none has arrived. */
  #isUnsigned = false;
  #isFinished = false;
  #isOver = false;

  constructor(source: AnswerSource) {
    this.#source = source;
    this.needsTexts = source.searches;
    this.#searches = new SearchReader(source);
  }

  decode(event: string | null, data: string, out: StreamEvent[]): void {
    if (this.#isOver) return;
    const body = parseObject(data);
    if (body === null) {
      // Some upstreams append the end mark of another protocol.
      if (data.trim() !== '[DONE]' && !isSignOfLife(event, data)) this.#fail(brokenEvent('messages'), out);
      return;
    }
    const type = textOrNull(body.type) ?? event;
    switch (type) {
      case 'content_block_delta':
        this.#delta(body, out);
        return;
      case 'content_block_start':
        this.#blockStart(body, out);
        return;
      case 'content_block_stop':
        this.#blockStop(body.index, out);
        return;
      case 'message_start':
        if (isObject(body.message)) this.#usage = decodeUsage(body.message.usage);
        this.#start(out);
        return;
      case 'message_delta':
        this.#messageDelta(body, out);
        return;
      case 'message_stop':
        this.#finish(null, null, out);
        this.#endUsage(out);
        this.#isOver = true;
        out.push({ kind: 'end' });
        return;
      case 'ping':
        return;
      default:
        this.#other(body, type, out);
    }
  }

  finish(out: StreamEvent[]): void {
    if (this.#isOver) return;
    this.#fail(endedEarly(), out);
  }

  /** Ignores an event of another protocol in a stream that began as one of this protocol. */
  #other(body: JsonObject, type: string | null, out: StreamEvent[]): void {
    if (type === 'error' || isObject(body.error)) this.#fail(upstreamError(body), out);
    else if (type === null || (!this.#isStarted && isForeign(type, body)))
      this.#fail(foreignEventOf(type, body), out);
  }

  #start(out: StreamEvent[]): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    out.push({ kind: 'start', usage: this.#usage });
  }

  #blockStart(body: JsonObject, out: StreamEvent[]): void {
    this.#start(out);
    const block = body.content_block;
    if (!isObject(block)) return;
    switch (block.type) {
      case 'text':
        this.#searches.textStart();
        this.#text(block.text, out);
        for (const citation of listOf(block.citations)) this.#searches.cite(citation);
        return;
      case 'thinking':
        text('reasoning', block.thinking, out);
        this.#isUnsigned = this.#source.unsignedThinking;
        this.#signature(block.signature, false, out);
        return;
      case 'redacted_thinking':
        this.#signature(block.data, true, out);
        return;
      case 'tool_use':
        this.#callStart(block, body.index, out);
        return;
      default:
        this.#searches.blockStart(block, body.index, out);
    }
  }

  #text(value: unknown, out: StreamEvent[]): void {
    text('text', value, out);
    if (typeof value === 'string') this.#searches.textLength += value.length;
  }

  #callStart(block: JsonObject, index: unknown, out: StreamEvent[]): void {
    const name = textOf(block.name);
    // A call without a name is ignored: no client could answer it.
    if (name === '') return;
    this.#blockStop(index, out);
    const call = this.#calls++;
    const input = inputText(block.input);
    this.#heldInput += input.length;
    if (this.#openCalls.size >= mostOpenCalls || this.#heldInput > mostHeldInput) {
      this.#fail(
        new GatewayError('upstream_error', 'The upstream has too many unfinished tool calls.', {
          answerTooLarge: true,
        }),
        out,
      );
      return;
    }
    this.#openCalls.set(index, { call, input, hasDeltas: false });
    out.push({ kind: 'callStart', choice: 0, call, id: textOf(block.id), name, custom: false });
  }

  #delta({ delta, index }: JsonObject, out: StreamEvent[]): void {
    this.#start(out);
    if (!isObject(delta)) return;
    switch (delta.type) {
      case 'text_delta':
        this.#text(delta.text, out);
        return;
      case 'citations_delta':
        this.#searches.cite(delta.citation);
        return;
      case 'thinking_delta':
        text('reasoning', delta.thinking, out);
        return;
      case 'signature_delta':
        this.#signature(delta.signature, false, out);
        return;
      case 'input_json_delta': {
        const open = this.#openCalls.get(index);
        const piece = textOf(delta.partial_json);
        // Without an open call, these are arguments of a tool that the upstream runs.
        if (open === undefined) this.#searches.input(index, piece);
        if (open === undefined || piece === '') return;
        open.hasDeltas = true;
        out.push({ kind: 'callArguments', choice: 0, call: open.call, text: piece });
      }
    }
  }

  #signature(value: unknown, redacted: boolean, out: StreamEvent[]): void {
    if (typeof value !== 'string' || value === '') return;
    this.#isUnsigned = false;
    this.#sign(value, redacted, out);
  }

  #sign(value: string, redacted: boolean, out: StreamEvent[]): void {
    out.push({
      kind: 'signature',
      choice: 0,
      signature: tagMessagesSignature(value, redacted, this.#source),
    });
  }

  #blockStop(index: unknown, out: StreamEvent[]): void {
    this.#searches.textEnd(out);
    if (this.#isUnsigned) this.#sign('', false, out);
    this.#isUnsigned = false;
    const open = this.#openCalls.get(index);
    if (open === undefined) return;
    this.#openCalls.delete(index);
    const { call, input, hasDeltas } = open;
    this.#heldInput -= input.length;
    if (!hasDeltas && input !== '') out.push({ kind: 'callArguments', choice: 0, call, text: input });
    out.push({ kind: 'callEnd', choice: 0, call });
  }

  #messageDelta({ delta, usage }: JsonObject, out: StreamEvent[]): void {
    this.#start(out);
    if (isObject(usage)) {
      this.#isCounted ||= decodeUsage(usage) !== null;
      this.#usage = decodeUsage(usage, this.#usage);
      if (this.#usage !== null) out.push({ kind: 'usage', usage: this.#usage });
    }
    const reason = isObject(delta) ? textOrNull(delta.stop_reason) : null;
    if (isObject(delta) && reason !== null) this.#finish(reason, textOrNull(delta.stop_sequence), out);
  }

  /**
   * Reports the usage at the end. The few output tokens of the first event are not the answer's, whose output was not
   * reported.
   */
  #endUsage(out: StreamEvent[]): void {
    if (this.#isCounted || this.#usage === null) return;
    out.push({ kind: 'usage', usage: { ...this.#usage, output: 0 } });
  }

  #finish(reason: string | null, stopSequence: string | null, out: StreamEvent[]): void {
    this.#start(out);
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#searches.textEnd(out);
    for (const index of [...this.#openCalls.keys()]) this.#blockStop(index, out);
    out.push({ kind: 'finish', choice: 0, reason: decodeFinish(reason, this.#calls > 0), stopSequence });
  }

  #fail(error: GatewayError, out: StreamEvent[]): void {
    this.#isOver = true;
    out.push({ kind: 'error', error });
  }
}

function text(kind: 'text' | 'reasoning', value: unknown, out: StreamEvent[]): void {
  if (typeof value === 'string' && value !== '') out.push({ kind, choice: 0, text: value });
}

/** Most characters of a search's input that are kept. */
const longestInput = 64 * 1024;
/** Most searches that may be open concurrently. */
const mostOpen = 64;
/** Most citations of one text that are reported. */
const mostCitations = 1000;
/** Most characters of addresses and titles that wait for the end of the text. */
const longestCited = 1024 * 1024;

/** A call of the search whose input is arriving. */
interface OpenSearch {
  /** Index of its block. */
  readonly index: unknown;
  readonly query: string;
  input: string;
}

/**
 * Reads the searches in a stream, and the citations of its texts. Positions of citations are known when the block ends.
 */
class SearchReader {
  /** Length of the answer's text so far. */
  textLength = 0;
  readonly #source: AnswerSource;
  /** Searches without a result, by their ids. */
  readonly #open = new Map<unknown, OpenSearch>();
  #textStart = 0;
  #cited: SearchResult[] = [];
  #citedCharacters = 0;

  constructor(source: AnswerSource) {
    this.#source = source;
  }

  /** Reads the start of a block of any type that not every conversation may have. */
  blockStart(block: JsonObject, index: unknown, out: StreamEvent[]): void {
    if (isSearchCall(block)) {
      const query = queryOf(block.input);
      const isShort = typeof block.id === 'string' && block.id.length + query.length <= longestInput;
      if (isShort && this.#open.size < mostOpen) this.#open.set(block.id, { index, query, input: '' });
    } else if (block.type === 'web_search_tool_result') {
      const search = this.#open.get(block.tool_use_id);
      const query = search === undefined ? '' : queryOf(parseObject(search.input)) || search.query;
      this.#open.delete(block.tool_use_id);
      out.push({ kind: 'search', choice: 0, query, results: resultsIn(block.content) });
    } else if (typeof block.type === 'string') {
      this.#source.lost.add(nameOfBlock(block.type));
    }
  }

  /** Adds a piece of the input of a tool that the upstream runs. */
  input(index: unknown, piece: string): void {
    for (const search of this.#open.values())
      if (search.index === index && search.input.length + piece.length <= longestInput) search.input += piece;
  }

  textStart(): void {
    this.#textStart = this.textLength;
    this.#drop();
  }

  /** Adds a citation of the open text. Without a search, the length of the text is not tracked. */
  cite(citation: unknown): void {
    const source = this.#source.searches ? sourceOf(citation) : null;
    const length = source === null ? 0 : source.url.length + source.title.length;
    if (
      source === null ||
      this.#cited.length >= mostCitations ||
      this.#citedCharacters + length > longestCited
    ) {
      this.#source.lost.add('citations');
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
