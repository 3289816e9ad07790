import type { StreamEvent, TokenLogprob } from '../../../conversation/answer.js';
import type { AnswerSource, StreamDecoder } from '../../../conversation/codec.js';
import { endedEarly } from '../../../conversation/stream-rules.js';
import { type Usage, withCharges } from '../../../conversation/usage.js';
import { GatewayError } from '../../../errors.js';
import { type JsonObject, textOf } from '../../../wire/json.js';
import { foreignStream } from '../../error-formats/upstream-error.js';
import { callOf, candidatesOf, isBlocked, noteLostParts, partsOf, signatureOf } from '../answer/decode.js';
import { decodeFinish, failedCandidateError, isReason } from '../answer/finish.js';
import { decodeUsage } from '../answer/usage.js';
import { GroundingReader } from '../grounding-decode.js';
import { decodeLogprobs } from '../logprobs.js';
import { readBlock } from './rules.js';

/** Most candidates of a stream; the API allows no more than 8. */
const mostChoices = 128;

/** State of a candidate. */
interface Progress {
  calls: number;
  /** Null until the upstream has sent one. */
  finishReason: string | null;
  isEmpty: boolean;
  /** A text or a call has arrived. */
  hasSaid: boolean;
  hasText: boolean;
  /** A text was the last that has arrived. */
  isInText: boolean;
  /** The last signature that stood on a later piece of this text. */
  textSignature: string | null;
  /** Log probabilities of chunks without a text, which go with the next one. */
  logprobs: TokenLogprob[];
  /** Its finish reason was reported, and nothing may follow. */
  isFinished: boolean;
  readonly grounding: GroundingReader;
}

/**
 * Reads a stream of responses, each with the new parts; see `StreamDecoder`. The protocol has no last event. The finish
 * reasons and the usage may still change, so they are reported when the bytes end. The finish reason of an empty answer
 * is reported immediately, since it is the whole answer.
 */
export class BlockDecoder implements StreamDecoder {
  readonly textMember = 'text';
  readonly needsTexts: boolean;
  readonly #source: AnswerSource;
  readonly #choices = new Map<number, Progress>();
  #usage: Usage | null = null;
  #isStarted = false;
  #isOver = false;

  constructor(source: AnswerSource) {
    this.#source = source;
    this.needsTexts = source.searches;
  }

  decode(event: string | null, data: string, out: StreamEvent[]): void {
    // Some upstreams end the stream with it, like chat's.
    if (this.#isOver || data.trim() === '[DONE]') return;
    const read = readBlock(event, data);
    if (read === null) return;
    if (read instanceof GatewayError) this.#fail(read, out);
    else this.#read(read, out);
  }

  finish(out: StreamEvent[]): void {
    if (this.#isOver) return;
    const choices = [...this.#choices];
    if (choices.length === 0 || choices.some(([, { finishReason }]) => finishReason === null)) {
      this.#fail(endedEarly(), out);
      return;
    }
    this.#isOver = true;
    for (const [choice, progress] of choices) finishChoice(choice, progress, out);
    if (this.#usage !== null) {
      const searches = choices.reduce((sum, [, { grounding }]) => sum + grounding.searches().length, 0);
      out.push({ kind: 'usage', usage: withCharges(this.#usage, { searches }) });
    }
    out.push({ kind: 'end' });
  }

  #fail(error: GatewayError, out: StreamEvent[]): void {
    this.#isOver = true;
    out.push({ kind: 'error', error });
  }

  #read(block: JsonObject, out: StreamEvent[]): void {
    this.#usage = decodeUsage(block.usageMetadata) ?? this.#usage;
    if (!this.#isStarted) {
      this.#isStarted = true;
      out.push({ kind: 'start', usage: this.#usage });
    }
    const candidates = candidatesOf(block);
    for (const [at, candidate] of candidates.entries()) {
      const { index } = candidate;
      const choice = typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : at;
      if (choice >= mostChoices) {
        this.#fail(foreignStream('generateContent', `a candidate with the index ${choice}`), out);
        return;
      }
      this.#readCandidate(candidate, choice, out);
      if (this.#isOver) return;
    }
    if (this.#choices.size === 0 && isBlocked(block)) {
      const progress = this.#progressOf(0);
      progress.finishReason = 'PROHIBITED_CONTENT';
      finishChoice(0, progress, out);
    }
  }

  #readCandidate(candidate: JsonObject, choice: number, out: StreamEvent[]): void {
    const progress = this.#progressOf(choice);
    if (progress.isFinished) return;
    const told = out.length;
    const parts = partsOf(candidate);
    // Those of thoughts alone are not of the answer's text.
    if (parts.length === 0 || parts.some((part) => part.thought !== true))
      for (const each of decodeLogprobs(candidate.logprobsResult) ?? []) progress.logprobs.push(each);
    for (const part of parts) {
      const text = textOf(part.text);
      const signature = signatureOf(part, this.#source);
      const call = part.thought === true || text !== '' ? null : callOf(part);
      if (part.thought === true || call !== null) endText(choice, progress, out);
      if (part.thought === true) {
        if (text !== '') out.push({ kind: 'reasoning', choice, text });
        if (signature !== null) out.push({ kind: 'signature', choice, signature });
        continue;
      }
      // A part carries the signature of the reasoning before it. Gemini also writes one on the last piece of a text
      // (https://github.com/pydantic/pydantic-ai/issues/3481), where it would divide the text.
      if (signature !== null && progress.isInText) progress.textSignature = signature;
      else if (signature !== null) out.push({ kind: 'signature', choice, signature });
      if (text !== '') {
        out.push(textEvent(choice, text, progress));
        progress.hasText = true;
        progress.isInText = true;
        progress.grounding.addText(text);
        progress.hasSaid = true;
        continue;
      }
      if (call === null) {
        noteLostParts(part, this.#source);
        continue;
      }
      progress.hasSaid = true;
      const number = progress.calls++;
      out.push({ kind: 'callStart', choice, call: number, id: call.id, name: call.name, custom: false });
      out.push({ kind: 'callArguments', choice, call: number, text: call.input });
      out.push({ kind: 'callEnd', choice, call: number });
    }
    for (const citation of progress.grounding.read(candidate.groundingMetadata))
      out.push({ kind: 'citation', choice, citation });
    if (out.length > told) progress.isEmpty = false;
    if (isReason(candidate.finishReason)) {
      const failure = this.#hasSaid() ? null : failedCandidateError(candidate);
      if (failure !== null) {
        if (this.#usage !== null) out.push({ kind: 'usage', usage: this.#usage });
        this.#fail(failure, out);
        return;
      }
      progress.finishReason = candidate.finishReason;
      if (progress.isEmpty) finishChoice(choice, progress, out);
    }
  }

  #hasSaid(): boolean {
    return [...this.#choices.values()].some(({ hasSaid }) => hasSaid);
  }

  #progressOf(choice: number): Progress {
    let progress = this.#choices.get(choice);
    if (progress === undefined) {
      progress = {
        calls: 0,
        finishReason: null,
        isEmpty: true,
        hasSaid: false,
        hasText: false,
        isInText: false,
        textSignature: null,
        logprobs: [],
        isFinished: false,
        grounding: new GroundingReader(this.#source),
      };
      this.#choices.set(choice, progress);
    }
    return progress;
  }
}

function textEvent(choice: number, text: string, progress: Progress): StreamEvent {
  const { logprobs } = progress;
  if (logprobs.length === 0) return { kind: 'text', choice, text };
  progress.logprobs = [];
  return { kind: 'text', choice, text, logprobs };
}

/** Reports the signature of a text that has ended. */
function endText(choice: number, progress: Progress, out: StreamEvent[]): void {
  const { textSignature: signature } = progress;
  if (signature !== null) out.push({ kind: 'signature', choice, signature });
  progress.isInText = false;
  progress.textSignature = null;
}

/** Reports why a choice ended, once. */
function finishChoice(choice: number, progress: Progress, out: StreamEvent[]): void {
  if (progress.isFinished) return;
  progress.isFinished = true;
  // An empty text after a call would begin another message.
  if (progress.logprobs.length > 0 && progress.hasText && progress.calls === 0)
    out.push(textEvent(choice, '', progress));
  endText(choice, progress, out);
  for (const search of progress.grounding.searches()) out.push({ ...search, choice });
  const reason = decodeFinish(progress.finishReason, progress.calls > 0);
  out.push({ kind: 'finish', choice, reason, stopSequence: null });
}
