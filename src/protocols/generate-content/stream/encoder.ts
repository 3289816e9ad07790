import type { FinishReason, StreamEvent, TokenLogprob } from '../../../conversation/answer.js';
import type { AnswerContext, StreamEncoder } from '../../../conversation/codec.js';
import { noSignature } from '../../../conversation/signature.js';
import { answerCallId, isCutCall } from '../../../conversation/tool-calls.js';
import type { Usage } from '../../../conversation/usage.js';
import { GatewayError } from '../../../errors.js';
import { entryOf } from '../../../wire/entry-of.js';
import { framed, type RawTextFrame, rawBytes } from '../../../wire/raw-text.js';
import { google } from '../../error-formats/formats.js';
import { answerEnd, blockedPrompt } from '../answer/encode.js';
import { encodeFinish } from '../answer/finish.js';
import { encodeInputUsage, encodeUsage } from '../answer/usage.js';
import { GroundingWriter } from '../grounding-encode.js';
import { encodeLogprobs } from '../logprobs.js';
import { type Call, callPart, textPart, thoughtPart } from '../parts-encode.js';

/** Most characters of calls that are held: each is sent as a whole. */
const mostCharacters = 16 * 1024 * 1024;

/** A whole call. */
interface HeldCall {
  readonly call: Call;
  readonly signature: string | null;
}

function lengthOf({ call, signature }: HeldCall): number {
  return call.name.length + call.input.length + (signature?.length ?? 0);
}

/** What is held of a choice until it can be sent. */
interface Choice {
  /**
   * A call that is held until the next event: the finish reason or the usage may have to be in the same block, and the
   * answer may have reached its token limit within it.
   */
  held: HeldCall | null;
  /** The signature of the reasoning that has ended. It stands on the next call, or on a separate part. */
  signature: string | null;
  finish: FinishReason | null;
  isEmpty: boolean;
  /** Grounding of its text and its searches; null until it has any. */
  grounding: GroundingWriter | null;
}

function newChoice(): Choice {
  return { held: null, signature: null, finish: null, isEmpty: true, grounding: null };
}

/**
 * Writes a stream of responses; see `StreamEncoder`. Calls are sent as a whole. The finish reasons and the usage stand
 * in the last block.
 */
export class BlockEncoder implements StreamEncoder {
  error: GatewayError | null = null;
  readonly #context: AnswerContext;
  readonly #choices = new Map<number, Choice>();
  readonly #end: string;
  readonly #inArray: boolean;
  #isOpen = false;
  #usage: Usage | null = null;
  /** JSON text of the usage that is known before the answer ends, with its comma. */
  #inputUsage = '';
  #call: Extract<StreamEvent, { readonly kind: 'callStart' }> | null = null;
  #arguments = '';
  /** Characters of the calls in `held`, of all choices. */
  #heldCharacters = 0;
  #isOver = false;
  #rawFrame: RawTextFrame | null = null;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#end = `,${answerEnd(context)}}`;
    this.#inArray = context.framing === 'array';
  }

  takesRawText(): boolean {
    const choice = this.#isOver ? undefined : this.#choices.get(0);
    return choice !== undefined && !choice.isEmpty && choice.held === null;
  }

  encodeRawText(raw: string): string | null {
    if (!this.takesRawText()) return null;
    if (this.#context.searches) this.#groundingOf(0).addRawText(raw);
    this.#rawFrame ??= framed(
      `${this.#beforeBlock()}{"candidates":[{"content":{"role":"model","parts":[{"text":"`,
      rawBytes(`"}]},"index":0}]${this.#inputUsage}${this.#end}${this.#inArray ? '' : '\n\n'}`),
    );
    return this.#rawFrame.before + raw + this.#rawFrame.after;
  }

  /** Returns null if every text is kept. */
  rawTextFrame(): RawTextFrame | null {
    return this.#context.searches ? null : this.#rawFrame;
  }

  encode(event: StreamEvent): string {
    if (this.#isOver) return '';
    switch (event.kind) {
      case 'text':
        return this.#text(event.choice, event.text, event.logprobs);
      case 'refusal':
        return this.#text(event.choice, event.text, undefined);
      case 'reasoning':
        return this.#reasoning(event.choice, event.text);
      case 'signature':
        return this.#signature(event.choice, event.signature);
      case 'callStart':
        this.#call = event;
        this.#arguments = '';
        return this.#release(event.choice, this.#choiceOf(event.choice));
      case 'callArguments':
        if (this.#heldCharacters + this.#arguments.length + event.text.length > mostCharacters)
          return this.#fail(
            new GatewayError('upstream_error', 'A tool call is too long.', { answerTooLarge: true }),
          );
        this.#arguments += event.text;
        return '';
      case 'callEnd':
        this.#endCall();
        return '';
      case 'finish':
        this.#choiceOf(event.choice).finish = event.reason;
        if (event.reason === 'stopSequence' && event.stopSequence !== null)
          this.#context.lost.add('stop_sequence');
        return '';
      case 'start':
        if (event.usage !== null) {
          this.#usage = event.usage;
          this.#inputUsage = `,"usageMetadata":${encodeInputUsage(event.usage)}`;
        }
        return '';
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'citation':
        this.#groundingOf(event.choice).addCitation(event.citation);
        return '';
      case 'search':
        this.#groundingOf(event.choice).addSearch(event);
        return '';
      case 'error':
        return this.#fail(event.error);
      case 'end':
        return this.#finish();
    }
  }

  #fail(error: GatewayError): string {
    this.error = error;
    this.#isOver = true;
    this.#arguments = '';
    return this.#frame(google.errorBody(error, '')) + (this.#inArray ? ']' : '');
  }

  #choiceOf(index: number): Choice {
    return entryOf(this.#choices, index, newChoice);
  }

  #groundingOf(index: number): GroundingWriter {
    const choice = this.#choiceOf(index);
    const { searches, lost } = this.#context;
    choice.grounding ??= new GroundingWriter(searches, lost);
    return choice.grounding;
  }

  #text(index: number, text: string, logprobs: readonly TokenLogprob[] | undefined): string {
    if (text === '' && logprobs === undefined) return '';
    const choice = this.#choiceOf(index);
    if (this.#context.searches) this.#groundingOf(index).addText(text);
    const released = this.#release(index, choice);
    const part = textPart(text, null);
    const probabilities = logprobs === undefined ? '' : `,"logprobsResult":${encodeLogprobs(logprobs)}`;
    return released + this.#block(index, choice, part, probabilities);
  }

  #reasoning(index: number, text: string): string {
    if (text === '' || !this.#context.showReasoning) return '';
    const choice = this.#choiceOf(index);
    const released = this.#release(index, choice) + this.#ownSignature(index, choice);
    return released + this.#block(index, choice, thoughtPart(text), '');
  }

  #signature(index: number, signature: string): string {
    const choice = this.#choiceOf(index);
    const released = this.#release(index, choice) + this.#ownSignature(index, choice);
    choice.signature = signature;
    return released;
  }

  /** Writes a signature that no part follows, as a separate part. */
  #ownSignature(index: number, choice: Choice): string {
    if (choice.signature === null) return '';
    const part = textPart('', choice.signature);
    choice.signature = null;
    return this.#block(index, choice, part, '');
  }

  #endCall(): void {
    const call = this.#call;
    if (call === null) return;
    const choice = this.#choiceOf(call.choice);
    const id = answerCallId(call.id, this.#context, call.choice, call.call);
    choice.held = {
      call: { id, name: call.name, input: this.#arguments, custom: call.custom },
      signature: choice.signature ?? (call.call === 0 ? noSignature : null),
    };
    choice.signature = null;
    this.#heldCharacters += lengthOf(choice.held);
    this.#arguments = '';
    this.#call = null;
  }

  /** Sends the part that was held, when another one follows. */
  #release(index: number, choice: Choice): string {
    if (choice.held === null) return '';
    const { held } = choice;
    choice.held = null;
    this.#heldCharacters -= lengthOf(held);
    return this.#block(index, choice, callPart(held.call, held.signature), '');
  }

  /** @param more members of the candidate, each with its comma */
  #block(index: number, choice: Choice, part: string, more: string): string {
    choice.isEmpty = false;
    return this.#frame(
      `{"candidates":[{"content":{"role":"model","parts":[${part}]},"index":${index}${more}}]` +
        this.#inputUsage +
        this.#end,
    );
  }

  #finish(): string {
    let text = '';
    let left = this.#choices.size;
    const usage = this.#usage === null ? '' : `,"usageMetadata":${encodeUsage(this.#usage)}`;
    if (left === 0) text = this.#frame(`{"candidates":[]${usage}${this.#end}`);
    for (const [index, { held, signature, finish, isEmpty, grounding }] of this.#choices) {
      const isBare = isEmpty && held === null && signature === null;
      const blocked = this.#choices.size === 1 && finish === 'filtered' && isBare;
      const reason = finish === null ? '' : `,"finishReason":"${encodeFinish(finish)}"`;
      const part = this.#lastPart(held, finish) ?? textPart('', held?.signature ?? signature);
      const outcome = blocked
        ? blockedPrompt
        : `"candidates":[{"content":{"role":"model","parts":[${part}]}${reason},"index":${index}${grounding?.text() ?? ''}}]`;
      left--;
      text += this.#frame(`{${outcome}${left === 0 ? usage : this.#inputUsage}${this.#end}`);
    }
    return this.#inArray ? `${text}]` : text;
  }

  /** Returns the call that was held. Returns null if the answer may have been cut within it: clients run what they get. */
  #lastPart(held: HeldCall | null, finish: FinishReason | null): string | null {
    if (held === null || (finish === 'length' && isCutCall(held.call, this.#context.tools))) return null;
    return callPart(held.call, held.signature);
  }

  #frame(json: string): string {
    return this.#beforeBlock() + json + (this.#inArray ? '' : '\n\n');
  }

  #beforeBlock(): string {
    if (!this.#inArray) return 'data: ';
    const before = this.#isOpen ? ',\n' : '[';
    this.#isOpen = true;
    return before;
  }
}
