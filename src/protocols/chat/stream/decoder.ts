import type { StreamEvent } from '../../../conversation/answer.js';
import type { AnswerSource, StreamDecoder } from '../../../conversation/codec.js';
import { endedEarly } from '../../../conversation/stream-rules.js';
import { type ReasoningName, tagOpaque, tagUnsigned } from '../../../conversation/unsigned-reasoning.js';
import { GatewayError } from '../../../errors.js';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../../wire/bytes.js';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../wire/json.js';
import { foreignStream } from '../../error-formats/upstream-error.js';
import { emptyStream, readChoiceEvent } from '../../openai-shared/choice-stream.js';
import { decodeCitations, decodeLogprobs } from '../annotations.js';
import { argumentsText, contentText, reasoningName, signatureBeside } from '../answer/decode.js';
import { decodeFinish } from '../answer/finish.js';
import { decodeUsage } from '../answer/usage.js';
import { ReasoningDetails } from '../reasoning-details.js';
import { streamParts } from './rules.js';

/** Most choices of a stream; SDKs support no more. */
const maxChoices = 128;

/** Reads a stream of `chat.completion.chunk` events; see `StreamDecoder`. Members of a wrong type count as absent. */
export class ChatDecoder implements StreamDecoder {
  readonly textMember = 'content';
  readonly #model: string;
  readonly #choices = new Map<number, Choice>();
  readonly #held: HeldArguments = { length: 0 };
  /** From the last chunk that has one. The chunk with the usage may lack it. */
  #tier: unknown = null;
  #isStarted = false;
  #isOver = false;

  constructor({ model }: AnswerSource) {
    this.#model = model;
  }

  decode(event: string | null, data: string, out: StreamEvent[]): void {
    if (this.#isOver) return;
    const read = readChoiceEvent(streamParts, event, data);
    if (read === 'end') this.#end(out);
    else if (read instanceof GatewayError) this.#fail(read, out);
    else if (read !== null) this.#chunk(read, out);
  }

  finish(out: StreamEvent[]): void {
    if (this.#isOver) return;
    // Some upstreams omit `[DONE]`. The stream is then complete if every choice has finished.
    const choices = [...this.#choices.values()];
    if (choices.length > 0 && choices.every(({ isFinished }) => isFinished)) this.#end(out);
    else this.#fail(endedEarly(), out);
  }

  /** Ends the stream. After `[DONE]`, a choice without a finish reason counts as finished. */
  #end(out: StreamEvent[]): void {
    if (this.#choices.size === 0) {
      this.#fail(emptyStream(), out);
      return;
    }
    for (const choice of this.#choices.values()) choice.finish(null, out);
    this.#isOver = true;
    out.push({ kind: 'end' });
  }

  #fail(error: GatewayError, out: StreamEvent[]): void {
    this.#isOver = true;
    out.push({ kind: 'error', error });
  }

  #chunk(chunk: JsonObject, out: StreamEvent[]): void {
    if (!this.#isStarted) out.push({ kind: 'start', usage: null });
    this.#isStarted = true;
    for (const choice of listOf(chunk.choices)) {
      const failure = isObject(choice) ? this.#choice(choice, out) : null;
      if (failure !== null) {
        this.#fail(failure, out);
        return;
      }
    }
    this.#tier = chunk.service_tier ?? this.#tier;
    const usage = decodeUsage({ usage: usageIn(chunk), service_tier: this.#tier });
    if (usage !== null) out.push({ kind: 'usage', usage });
  }

  #choice(value: JsonObject, out: StreamEvent[]): GatewayError | null {
    const index = typeof value.index === 'number' ? value.index : 0;
    if (!(Number.isInteger(index) && index >= 0 && index < maxChoices))
      return foreignStream(streamParts.protocol, `a choice with the index ${index}`);
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = new Choice(index, this.#model, this.#held);
      this.#choices.set(index, choice);
    }
    return choice.read(value, out);
  }
}

/** Returns the usage of a chunk. Moonshot reports it in the choice that ends, and Groq in a separate member. */
function usageIn(chunk: JsonObject): unknown {
  if (isObject(chunk.usage)) return chunk.usage;
  for (const choice of listOf(chunk.choices))
    if (isObject(choice) && isObject(choice.usage)) return choice.usage;
  return isObject(chunk.x_groq) ? chunk.x_groq.usage : null;
}

/** A choice that has begun. */
class Choice {
  isFinished = false;
  readonly #index: number;
  readonly #model: string;
  readonly #calls: CallDeltas;
  /** Member name of the open reasoning, or null. */
  #reasoning: ReasoningName | null = null;
  readonly #details = new ReasoningDetails();

  constructor(index: number, model: string, held: HeldArguments) {
    this.#index = index;
    this.#model = model;
    this.#calls = new CallDeltas(index, model, held);
  }

  /** @returns the error that makes the stream unusable, or null */
  read({ delta, logprobs, finish_reason }: JsonObject, out: StreamEvent[]): GatewayError | null {
    if (this.isFinished) return null;
    if (isObject(delta)) {
      this.#reason(delta, out);
      this.#texts(delta, logprobs, out);
      const error = this.#calls.read(delta, out);
      if (error !== null) return error;
    }
    // Some upstreams send an empty reason in every chunk.
    const reason = textOf(finish_reason);
    if (reason !== '') this.finish(reason, out);
    return null;
  }

  finish(reason: string | null, out: StreamEvent[]): void {
    if (this.isFinished) return;
    this.isFinished = true;
    this.#calls.end(out);
    this.#endReasoning(out);
    const finish = decodeFinish(reason, this.#calls.started > 0);
    out.push({ kind: 'finish', choice: this.#index, reason: finish, stopSequence: null });
  }

  /** Reads reasoning. It ends when anything else arrives. The name of its member is then reported as its signature. */
  #reason(delta: JsonObject, out: StreamEvent[]): void {
    const name = reasoningName(delta);
    if (name !== null) {
      this.#reasoning ??= name;
      out.push({ kind: 'reasoning', choice: this.#index, text: delta[name] as string });
    }
    this.#details.add(delta);
    if (this.#reasoning === null && this.#details.isEmpty) return;
    const { tool_calls: calls, function_call: call } = delta;
    const hasCalls = (Array.isArray(calls) && calls.length > 0) || isObject(call);
    if (hasCalls || delta.refusal || contentText(delta.content) !== '') this.#endReasoning(out);
  }

  #endReasoning(out: StreamEvent[]): void {
    const ofText = this.#reasoning === null ? null : tagUnsigned(this.#reasoning, this.#model);
    this.#reasoning = null;
    for (const signature of [ofText, this.#details.takeToken(this.#model)])
      if (signature !== null) out.push({ kind: 'signature', choice: this.#index, signature });
  }

  #texts(delta: JsonObject, given: unknown, out: StreamEvent[]): void {
    const choice = this.#index;
    const text = contentText(delta.content);
    const logprobs = decodeLogprobs(given);
    if (logprobs !== undefined) out.push({ kind: 'text', choice, text, logprobs });
    else if (text !== '') out.push({ kind: 'text', choice, text });
    const refusal = textOf(delta.refusal);
    if (refusal !== '') out.push({ kind: 'refusal', choice, text: refusal });
    for (const citation of decodeCitations(delta.annotations))
      out.push({ kind: 'citation', choice, citation });
  }
}

/** Most calls of an answer; SDKs support no more. */
const maxCalls = 128;
/** Most characters of arguments in a stream that wait for the names of their calls. */
const maxHeld = 8 * 1024 * 1024;
/** Replaces the index of a call in the older `function_call` form. */
const functionCallIndex = -1;

interface Call {
  /** Number of the call in its choice; -1 before it has a name and is reported. */
  number: number;
  id: string;
  name: string;
  /** Arguments that arrived before the name. */
  held: string;
  /** The signature beside it that arrived before the name, or null. */
  beside: string | null;
  readonly custom: boolean;
  readonly progress: JsonProgress;
  ended: boolean;
}

/** Arguments that wait for the names of calls, in all choices of a stream. */
interface HeldArguments {
  length: number;
}

/**
 * Reads the tool calls of one choice. A call begins with its first fragment and continues with those of the same index.
 * If an upstream omits the index, it continues with fragments of the same id or, without an id, with the next ones.
 * Calls may alternate: a complete one ends when another begins, and the rest when the choice ends.
 */
class CallDeltas {
  /** Number of calls that were reported. */
  started = 0;
  readonly #choice: number;
  readonly #model: string;
  readonly #held: HeldArguments;
  readonly #byIndex = new Map<number, Call>();
  readonly #calls: Call[] = [];
  /** The call of the last fragment. */
  #current: Call | undefined;

  constructor(choice: number, model: string, held: HeldArguments) {
    this.#choice = choice;
    this.#model = model;
    this.#held = held;
  }

  /** @returns the error that makes the stream unusable, or null */
  read(delta: JsonObject, out: StreamEvent[]): GatewayError | null {
    for (const fragment of listOf(delta.tool_calls)) {
      const error = isObject(fragment) ? this.#fragment(fragment, fragment.index, out) : null;
      if (error !== null) return error;
    }
    if (!isObject(delta.function_call)) return null;
    return this.#fragment({ function: delta.function_call }, functionCallIndex, out);
  }

  /** Ends the open calls. */
  end(out: StreamEvent[]): void {
    for (const call of this.#calls) this.#endCall(call, out);
  }

  #fragment(fragment: JsonObject, index: unknown, out: StreamEvent[]): GatewayError | null {
    const custom = isObject(fragment.custom);
    const body = objectOf(custom ? fragment.custom : fragment.function);
    const id = textOf(fragment.id);
    const name = textOf(body.name);
    const text = argumentsText(custom ? body.input : body.arguments);
    let call =
      typeof index === 'number'
        ? indexedCall(this.#byIndex.get(index), { id, name, text })
        : this.#withoutIndex(id, name);
    if (call === undefined) {
      if (this.#calls.length === maxCalls)
        return new GatewayError(
          'upstream_error',
          `The upstream's answer has more than ${maxCalls} tool calls.`,
        );
      for (const each of this.#calls) if (each.progress.isComplete) this.#endCall(each, out);
      call = {
        ...{ number: -1, id, name: '', held: '', beside: null, custom },
        progress: new JsonProgress(),
        ended: false,
      };
      this.#calls.push(call);
      if (typeof index === 'number') this.#byIndex.set(index, call);
    }
    this.#current = call;
    if (call.number === -1) {
      if (call.id === '') call.id = id;
      call.beside ??= signatureBeside(fragment);
      if (name !== '') this.#start(call, name, out);
    }
    return this.#addInput(call, text, out);
  }

  /** Returns the call that a fragment without an index continues, if any. */
  #withoutIndex(id: string, name: string): Call | undefined {
    const current = this.#current;
    if (id !== '') {
      const own = this.#calls.findLast((call) => call.id === id);
      // An id may arrive after the first fragment.
      if (own !== undefined || current === undefined || current.id !== '') return own;
    }
    return current !== undefined && name !== '' && beginsAnother(current, name) ? undefined : current;
  }

  #start(call: Call, name: string, out: StreamEvent[]): void {
    const choice = this.#choice;
    const { id, custom, held, beside } = call;
    call.number = this.started++;
    call.name = name;
    if (beside !== null)
      out.push({ kind: 'signature', choice, signature: tagOpaque('thought_signature', beside, this.#model) });
    out.push({ kind: 'callStart', choice, call: call.number, id, name, custom });
    if (held === '') return;
    this.#held.length -= held.length;
    call.held = '';
    out.push({ kind: 'callArguments', choice, call: call.number, text: held });
  }

  #addInput(call: Call, text: string, out: StreamEvent[]): GatewayError | null {
    if (text === '') return null;
    if (call.ended) {
      if (text.trim() === '') return null;
      return new GatewayError(
        'upstream_error',
        'The upstream continued a tool call that was already complete.',
      );
    }
    if (!call.custom) {
      // Some upstreams write empty arguments as null.
      if (call.progress.depth === 0 && text.trim() === 'null') return null;
      call.progress.add(text);
    }
    if (call.number !== -1) {
      out.push({ kind: 'callArguments', choice: this.#choice, call: call.number, text });
      return null;
    }
    call.held += text;
    this.#held.length += text.length;
    if (this.#held.length <= maxHeld) return null;
    return new GatewayError('upstream_error', "The upstream's tool call has no name.");
  }

  /** Ends a call. One that never got a name was not reported, and never is: no client could answer it. */
  #endCall(call: Call, out: StreamEvent[]): void {
    if (!call.ended && call.number !== -1)
      out.push({ kind: 'callEnd', choice: this.#choice, call: call.number });
    call.ended = true;
  }
}

/**
 * Returns the call of an index, unless the fragment begins another one. A different id or a name alone does not show
 * that: some upstreams make a new id for each fragment, or repeat the name.
 */
function indexedCall(
  call: Call | undefined,
  { id, name, text }: { readonly id: string; readonly name: string; readonly text: string },
): Call | undefined {
  if (call === undefined || id === '' || id === call.id || name === '') return call;
  // The last fragment of an upstream that repeats the name in each of them: it adds nothing.
  if (name === call.name && text === '' && call.progress.isComplete) return call;
  return beginsAnother(call, name) ? undefined : call;
}

/** Tells whether a fragment with this name, which may belong to another call, cannot belong to this one. */
function beginsAnother(call: Call, name: string): boolean {
  return call.progress.isComplete || (call.name !== '' && call.name !== name);
}

/** Tracks how much of a JSON object or array has arrived in fragments, without keeping them. */
class JsonProgress {
  depth = 0;
  /** The outermost bracket is closed. */
  isComplete = false;
  #inString = false;
  #isEscaped = false;

  /** Counts brackets. Nothing else is checked. */
  add(fragment: string): void {
    for (let at = 0; at < fragment.length && !this.isComplete; at++) {
      const code = fragment.charCodeAt(at);
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === BACKSLASH) this.#isEscaped = true;
        else if (code === QUOTE) this.#inString = false;
      } else if (code === QUOTE) {
        this.#inString = true;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        this.depth++;
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        this.depth--;
        this.isComplete = this.depth <= 0;
      }
    }
  }
}
