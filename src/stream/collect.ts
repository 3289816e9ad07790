import type { Answer, AnswerPart, FinishReason, TokenLogprob, UrlCitation } from '../conversation/answer.js';
import type { StreamEvent } from '../conversation/events.js';
import type { Usage } from '../conversation/usage.js';

/** A part as it grows. */
type GrowingPart =
  | { kind: 'text'; text: string; citations: UrlCitation[]; logprobs: TokenLogprob[] }
  | { kind: 'refusal'; text: string }
  | { kind: 'reasoning'; text: string; signature: string | null }
  | { kind: 'toolCall'; id: string; name: string; input: string; custom: boolean; at: string };

/** Puts the steps of a streamed answer together again to the whole one. Of several answers it takes the first. */
export class AnswerCollector {
  readonly #parts: GrowingPart[] = [];
  #finish: FinishReason | null = null;
  #stopSequence: string | null = null;
  #usage: Usage | null = null;
  /** Characters of what it holds. */
  held = 0;

  /** @param event in the order in which encoders get them */
  add(event: StreamEvent): void {
    if ('choice' in event && event.choice !== 0) return;
    if ('text' in event) this.held += event.text.length;
    switch (event.kind) {
      case 'text': {
        const part = this.#text();
        part.text += event.text;
        if (event.logprobs !== undefined) part.logprobs.push(...event.logprobs);
        return;
      }
      case 'citation':
        this.#text().citations.push(event.citation);
        return;
      case 'refusal':
        this.#refusal().text += event.text;
        return;
      case 'reasoning':
        this.#reasoning().text += event.text;
        return;
      case 'signature':
        this.held += event.signature.length;
        this.#reasoning().signature = event.signature;
        return;
      case 'callStart': {
        const { id, name, custom } = event;
        this.#parts.push({ kind: 'toolCall', id, name, input: '', custom, at: '' });
        return;
      }
      case 'callArguments': {
        const part = this.#parts.at(-1);
        if (part?.kind === 'toolCall') part.input += event.text;
        return;
      }
      case 'finish':
        this.#finish = event.reason;
        this.#stopSequence = event.stopSequence;
        return;
      case 'usage':
        this.#usage = event.usage;
    }
  }

  answer(): Answer {
    return {
      choices: [
        {
          parts: this.#parts.map(plain),
          finish: this.#finish ?? 'other',
          stopSequence: this.#stopSequence,
        },
      ],
      usage: this.#usage,
    };
  }

  #text(): Extract<GrowingPart, { kind: 'text' }> {
    const last = this.#parts.at(-1);
    if (last?.kind === 'text') return last;
    const part = { kind: 'text' as const, text: '', citations: [], logprobs: [] };
    this.#parts.push(part);
    return part;
  }

  #refusal(): Extract<GrowingPart, { kind: 'refusal' }> {
    const last = this.#parts.at(-1);
    if (last?.kind === 'refusal') return last;
    const part = { kind: 'refusal' as const, text: '' };
    this.#parts.push(part);
    return part;
  }

  /** A signature ends the reasoning before it, and stands for some that is not shown where there is none. */
  #reasoning(): Extract<GrowingPart, { kind: 'reasoning' }> {
    const last = this.#parts.at(-1);
    if (last?.kind === 'reasoning' && last.signature === null) return last;
    const part = { kind: 'reasoning' as const, text: '', signature: null };
    this.#parts.push(part);
    return part;
  }
}

function plain(part: GrowingPart): AnswerPart {
  if (part.kind !== 'text') return part;
  const { text, citations, logprobs } = part;
  return {
    kind: 'text',
    text,
    ...(citations.length > 0 ? { citations } : {}),
    ...(logprobs.length > 0 ? { logprobs } : {}),
  };
}
