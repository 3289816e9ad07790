import type { StreamEvent, UrlCitation } from '../../../conversation/answer.js';
import type { AnswerSource, StreamDecoder } from '../../../conversation/codec.js';
import { isSignOfLife } from '../../../conversation/event-protocol.js';
import { endedEarly } from '../../../conversation/stream-rules.js';
import { GatewayError } from '../../../errors.js';
import {
  isObject,
  type JsonObject,
  listOf,
  numberOrNull,
  objectOf,
  parseObject,
  textOf,
  textOrNull,
} from '../../../wire/json.js';
import { brokenEvent, foreignEvent } from '../../error-formats/upstream-error.js';
import { logprobsIn } from '../../openai-shared/text-details.js';
import { citationOf, givenCallId, inputOf, partsOfItem, signatureOf } from '../answer/decode.js';
import { decodeFinish } from '../answer/finish.js';
import { decodeUsage } from '../charges.js';
import { bitOf, type ItemState, ItemStates, kindOf } from '../item-states.js';
import { joinedTexts } from '../request/decode.js';
import { isSearch } from '../search-item.js';
import { classifyEvent, upstreamError } from '../upstream-error.js';

/** Most characters of a call's arguments that may arrive before its name. */
const mostEarly = 8 * 1024 * 1024;
/** Most characters that are kept of all items. */
const mostHeld = 32 * 1024 * 1024;
const tooMany = "The upstream's answer has too many items to be kept.";

/** Reads an upstream's stream; see `StreamDecoder`. */
export class ResponseDecoder implements StreamDecoder {
  readonly textMember = 'delta';
  readonly #source: AnswerSource;
  readonly #items = new ItemStates();
  #calls = 0;
  #searches = 0;
  /**
   * Length of the texts of all parts that have ended. Counted in the events that repeat a text, because those that
   * stream it need not pass through this decoder.
   */
  #textLength = 0;
  #isStarted = false;
  #isOver = false;

  constructor(source: AnswerSource) {
    this.#source = source;
  }

  decode(event: string | null, data: string, out: StreamEvent[]): void {
    if (this.#isOver || data === '[DONE]') return;
    const body = parseObject(data);
    if (body === null) {
      if (!isSignOfLife(event, data)) this.#fail(brokenEvent('responses'), out);
      return;
    }
    const type = textOrNull(body.type) ?? event;
    switch (classifyEvent(type, body)) {
      case 'silence':
        break;
      case 'failure': {
        // The usage of a failed response is charged, too.
        const usage = isObject(body.response) ? decodeUsage(body.response, this.#searches) : null;
        if (usage !== null && this.#isStarted) out.push({ kind: 'usage', usage });
        this.#fail(upstreamError(body), out);
        break;
      }
      case 'foreign':
        this.#fail(foreignEvent('responses', type), out);
        break;
      case 'known':
        if (!this.#isStarted) out.push({ kind: 'start', usage: null });
        this.#isStarted = true;
        this.#step(type, body, out);
        if (this.#items.held > mostHeld && !this.#isOver)
          this.#fail(new GatewayError('upstream_error', tooMany, { answerTooLarge: true }), out);
    }
  }

  finish(out: StreamEvent[]): void {
    if (this.#isOver) return;
    this.#fail(endedEarly(), out);
  }

  #step(type: string | null, body: JsonObject, out: StreamEvent[]): void {
    switch (type) {
      case 'response.output_text.delta':
        this.#text(body, body.delta, out);
        break;
      case 'response.refusal.delta':
        this.#refusal(body, body.delta, out);
        break;
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.#input(this.#items.of(body), body.delta, out);
        break;
      case 'response.reasoning_summary_text.delta':
        this.#reason(body, { part: body.summary_index, kind: 'summary', text: body.delta }, out);
        break;
      case 'response.reasoning_text.delta':
        this.#reason(body, { part: body.content_index, kind: 'full', text: body.delta }, out);
        break;
      case 'response.output_text.annotation.added':
        this.#annotate(body, out);
        break;
      case 'response.output_item.added':
        if (isObject(body.item)) this.#add(this.#items.of(body), body.item, out);
        break;
      case 'response.output_item.done':
        if (isObject(body.item)) this.#done(this.#items.of(body), body.item, out);
        break;
      case 'response.completed':
      case 'response.incomplete':
        this.#end(objectOf(body.response), type, out);
        break;
      default:
        this.#whole(type, body, out);
    }
  }

  /** Reads events that repeat what has arrived, for upstreams that send it only in this form. */
  #whole(type: string | null, body: JsonObject, out: StreamEvent[]): void {
    const hasSeen = (part: unknown): boolean => (this.#items.of(body).seen & bitOf(part)) !== 0;
    switch (type) {
      case 'response.output_text.done':
        if (!hasSeen(body.content_index)) this.#text(body, body.text, out);
        this.#endText(this.#items.of(body), body.content_index, body.text);
        break;
      case 'response.refusal.done':
        if (!hasSeen(body.content_index)) this.#refusal(body, body.refusal, out);
        break;
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done': {
        const state = this.#items.of(body);
        if (!state.hasInput) this.#input(state, body.arguments ?? body.input, out);
        break;
      }
      case 'response.reasoning_summary_text.done':
        if (!hasSeen(body.summary_index))
          this.#reason(body, { part: body.summary_index, kind: 'summary', text: body.text }, out);
        break;
      case 'response.reasoning_text.done':
        if (!hasSeen(body.content_index))
          this.#reason(body, { part: body.content_index, kind: 'full', text: body.text }, out);
        break;
      default:
        break;
    }
  }

  #text(body: JsonObject, text: unknown, out: StreamEvent[]): void {
    if (typeof text !== 'string') return;
    this.#startText(this.#items.of(body), body.content_index);
    const logprobs = logprobsIn(body.logprobs);
    if (text === '' && logprobs === undefined) return;
    out.push(
      logprobs === undefined
        ? { kind: 'text', choice: 0, text }
        : { kind: 'text', choice: 0, text, logprobs },
    );
  }

  #startText(state: ItemState, part: unknown): void {
    state.kind = 'message';
    if ((state.seen & bitOf(part)) !== 0) return;
    state.seen |= bitOf(part);
    state.starts[partNumber(part)] = this.#textLength;
  }

  #endText(state: ItemState, part: unknown, text: unknown): void {
    if (typeof text !== 'string' || (state.ended & bitOf(part)) !== 0) return;
    state.ended |= bitOf(part);
    this.#textLength += text.length;
  }

  #refusal(body: JsonObject, text: unknown, out: StreamEvent[]): void {
    if (typeof text !== 'string') return;
    const state = this.#items.of(body);
    state.kind = 'message';
    state.seen |= bitOf(body.content_index);
    if (text !== '') out.push({ kind: 'refusal', choice: 0, text });
  }

  #reason(
    body: JsonObject,
    { part, kind, text }: { part: unknown; kind: 'summary' | 'full'; text: unknown },
    out: StreamEvent[],
  ): void {
    const state = this.#items.of(body);
    state.kind = 'reasoning';
    state.reasoning ??= kind;
    if (typeof text !== 'string' || text === '' || state.reasoning !== kind) return;
    const index = numberOrNull(part) ?? 0;
    const isNext = state.reasoningPart !== -1 && state.reasoningPart !== index;
    state.seen |= bitOf(index);
    state.reasoningPart = index;
    out.push({ kind: 'reasoning', choice: 0, text: isNext ? `\n\n${text}` : text });
  }

  #annotate(body: JsonObject, out: StreamEvent[]): void {
    const state = this.#items.of(body);
    state.hasCitations = true;
    const citation = citationOf(body.annotation);
    const start = state.starts[partNumber(body.content_index)] ?? this.#textLength;
    if (citation !== null) cite(citation, start, out);
    else this.#source.lost.add('annotations');
  }

  /** Begins a call once its name is known. */
  #add(state: ItemState, item: JsonObject, out: StreamEvent[]): void {
    if (kindOf(item) !== 'call' || state.call !== -1 || state.isDone) return;
    const name = textOf(item.name);
    if (name !== '') this.#startCall(state, item, out);
  }

  #startCall(state: ItemState, item: JsonObject, out: StreamEvent[]): void {
    state.call = this.#calls++;
    const name = textOf(item.name);
    const custom = item.type === 'custom_tool_call';
    out.push({ kind: 'callStart', choice: 0, call: state.call, id: givenCallId(item), name, custom });
    if (state.early !== '')
      out.push({ kind: 'callArguments', choice: 0, call: state.call, text: state.early });
    state.early = '';
  }

  #input(state: ItemState, text: unknown, out: StreamEvent[]): void {
    if (typeof text !== 'string' || text === '' || state.isDone) return;
    state.kind = 'call';
    state.hasInput = true;
    if (state.call !== -1) {
      out.push({ kind: 'callArguments', choice: 0, call: state.call, text });
      return;
    }
    state.early += text;
    this.#items.held += text.length;
    if (state.early.length > mostEarly)
      this.#fail(
        new GatewayError('upstream_error', 'The upstream sent the name of a tool call too late.'),
        out,
      );
  }

  /** Ends an item, with everything of it that has not arrived before. */
  #done(state: ItemState, item: JsonObject, out: StreamEvent[]): void {
    if (state.isDone) return;
    const kind = kindOf(item);
    // If two items have the same number, the second one ends the call of the first.
    if (kind !== 'call' && state.call !== -1) this.#endCall(state, null, out);
    switch (kind) {
      case 'call':
        this.#add(state, item, out);
        // The last event may contain the call's name.
        if (state.call === -1) this.#keep(state, item);
        else this.#endCall(state, item, out);
        return;
      case 'reasoning': {
        const text = state.seen === 0 ? joinedTexts(item.summary) || joinedTexts(item.content) : '';
        if (text !== '') out.push({ kind: 'reasoning', choice: 0, text });
        const signature = signatureOf(item, this.#source);
        if (signature !== null) out.push({ kind: 'signature', choice: 0, signature });
        break;
      }
      case 'message':
        this.#message(state, item, out);
        break;
      default:
        this.#tool(item, out);
        break;
    }
    state.isDone = true;
  }

  #keep(state: ItemState, item: JsonObject): void {
    state.unnamed = item;
    this.#items.held += JSON.stringify(item).length;
  }

  /** Reads an item that the upstream's own tools made. */
  #tool(item: JsonObject, out: StreamEvent[]): void {
    if (isSearch(item)) this.#searches++;
    for (const part of partsOfItem(item, this.#source, ''))
      if (part.kind === 'search') out.push({ ...part, choice: 0 });
  }

  #message(state: ItemState, item: JsonObject, out: StreamEvent[]): void {
    const content = listOf(item.content);
    content.forEach((part, index) => {
      const isSeen = (state.seen & bitOf(index)) !== 0;
      for (const found of partsOfItem({ type: 'message', content: [part] }, this.#source, '')) {
        if (found.kind === 'refusal' && !isSeen) out.push({ ...found, choice: 0 });
        if (found.kind !== 'text') continue;
        const { text, logprobs, citations } = found;
        if (!isSeen && text !== '') out.push({ kind: 'text', choice: 0, text, logprobs });
        this.#startText(state, index);
        this.#endText(state, index, text);
        if (state.hasCitations) continue;
        for (const citation of citations ?? []) cite(citation, state.starts[partNumber(index)] ?? 0, out);
      }
    });
  }

  #endCall(state: ItemState, item: JsonObject | null, out: StreamEvent[]): void {
    if (!state.hasInput && item !== null) this.#input(state, inputOf(item), out);
    out.push({ kind: 'callEnd', choice: 0, call: state.call });
    state.isDone = true;
  }

  #end(response: JsonObject, type: string, out: StreamEvent[]): void {
    for (const { state, item } of this.#items.match(response.output)) this.#done(state, item, out);
    for (const state of this.#items.all()) {
      if (state.isDone) continue;
      if (state.unnamed !== null && state.call === -1) this.#startCall(state, state.unnamed, out);
      if (state.call !== -1) this.#endCall(state, state.unnamed, out);
    }
    const status = type === 'response.incomplete' ? 'incomplete' : 'completed';
    const usage = decodeUsage(response, this.#searches);
    const reason = decodeFinish({ ...response, status }, this.#calls > 0);
    if (usage !== null) out.push({ kind: 'usage', usage });
    out.push({ kind: 'finish', choice: 0, reason, stopSequence: null }, { kind: 'end' });
    this.#isOver = true;
  }

  #fail(error: GatewayError, out: StreamEvent[]): void {
    this.#isOver = true;
    out.push({ kind: 'error', error });
  }
}

/** Returns the number of a part for its bit. */
function partNumber(part: unknown): number {
  return 31 - Math.clz32(bitOf(part));
}

/** Adds a citation. Its position is relative to the part, and is reported relative to the answer's text. */
function cite(citation: UrlCitation, offset: number, out: StreamEvent[]): void {
  const { start, end } = citation;
  out.push({
    kind: 'citation',
    choice: 0,
    citation: { ...citation, start: start + offset, end: end + offset },
  });
}
