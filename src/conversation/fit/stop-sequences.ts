import type { Answer, AnswerChoice, AnswerPart, AnswerText, StreamEvent, TokenLogprob } from '../answer.js';
import type { ConversationRequest } from '../request.js';
import { leaveOut } from '../setting-names.js';
import type { AnswerRestorer, FitContext, Fitted } from './fitted.js';

/** Maximum number of sequences that are looked for. Each costs a step per character of the answer. */
const mostWatched = 64;

/** Looks in the answer for stop sequences that the upstream does not support. The answer ends at the first match. */
export function fitStopSequences(
  request: ConversationRequest,
  { rules: { stop }, leftOut }: FitContext,
): Fitted | null {
  if (request.stop.length === 0) return null;
  const takes = (sequence: string) => stop.blank || sequence.trim() !== '';
  const taken = request.stop.filter(takes).slice(0, stop.most);
  if (taken.length === request.stop.length) return null;
  const known = new Set(taken);
  const others = [...new Set(request.stop.filter((sequence) => !known.has(sequence)))];
  if (others.length > mostWatched) leaveOut(request, 'stop', leftOut);
  return {
    request: { ...request, stop: taken },
    restorer: new StopCutter(others.slice(0, mostWatched), request.candidates),
  };
}

type TextEvent = Extract<StreamEvent, { readonly kind: 'text' }>;

/** A choice whose text is searched. */
interface Choice {
  readonly text: StopText;
  /** Log probabilities of the characters that are held back. */
  logprobs: TokenLogprob[];
  isOver: boolean;
}

class StopCutter implements AnswerRestorer {
  readonly changesText = true;
  readonly #sequences: readonly string[];
  readonly #candidates: number;
  readonly #choices = new Map<number, Choice>();
  #overs = 0;
  #hasEnded = false;

  constructor(sequences: readonly string[], candidates: number) {
    this.#sequences = sequences;
    this.#candidates = candidates;
  }

  event(event: StreamEvent, out: StreamEvent[]): void {
    if (this.#hasEnded) return;
    if (!('choice' in event)) {
      out.push(event);
      return;
    }
    const choice = this.#choiceOf(event.choice);
    if (choice.isOver) return;
    if (event.kind === 'text') this.#text(event, choice, out);
    else {
      // A citation belongs to the text before it, in which a sequence may continue.
      if (event.kind !== 'citation') flush(event.choice, choice, out);
      out.push(event);
    }
  }

  answer(answer: Answer): Answer {
    return { ...answer, choices: answer.choices.map((choice) => cut(choice, this.#sequences)) };
  }

  #choiceOf(number: number): Choice {
    let choice = this.#choices.get(number);
    if (choice === undefined) {
      choice = { text: new StopText(this.#sequences), logprobs: [], isOver: false };
      this.#choices.set(number, choice);
    }
    return choice;
  }

  #text(event: TextEvent, choice: Choice, out: StreamEvent[]): void {
    const text = choice.text.add(event.text);
    if (event.logprobs !== undefined) choice.logprobs.push(...event.logprobs);
    const { met } = choice.text;
    if (text !== '') {
      out.push(spoken(event.choice, text, met === null ? choice.logprobs : within(choice.logprobs, text)));
      choice.logprobs = [];
    }
    if (met === null) return;
    choice.isOver = true;
    out.push({ kind: 'finish', choice: event.choice, reason: 'stopSequence', stopSequence: met });
    this.#overs++;
    this.#hasEnded = this.#overs === this.#candidates;
    if (this.#hasEnded) out.push({ kind: 'end' });
  }
}

function flush(number: number, choice: Choice, out: StreamEvent[]): void {
  const rest = choice.text.end();
  if (rest !== '') out.push(spoken(number, rest, choice.logprobs));
  choice.logprobs = [];
}

function spoken(choice: number, text: string, logprobs: readonly TokenLogprob[]): TextEvent {
  return logprobs.length === 0 ? { kind: 'text', choice, text } : { kind: 'text', choice, text, logprobs };
}

/** Returns the log probabilities of the tokens in a text. */
function within(logprobs: readonly TokenLogprob[], text: string): TokenLogprob[] {
  let length = 0;
  return logprobs.filter(({ token }) => {
    length += token.length;
    return length <= text.length;
  });
}

/** Returns a whole choice up to the first sequence in its text. */
function cut(choice: AnswerChoice, sequences: readonly string[]): AnswerChoice {
  const { parts } = choice;
  for (let start = 0; start < parts.length; start++) {
    const texts = textsFrom(parts, start);
    if (texts.length === 0) continue;
    const reader = new StopText(sequences);
    const kept = reader.add(texts.map(({ text }) => text).join('')).length;
    if (reader.met !== null)
      return {
        parts: [...parts.slice(0, start), ...shortened(texts, kept)],
        finish: 'stopSequence',
        stopSequence: reader.met,
      };
    start += texts.length - 1;
  }
  return choice;
}

/** Returns adjacent texts, since a sequence may span them. */
function textsFrom(parts: readonly AnswerPart[], start: number): AnswerText[] {
  const texts: AnswerText[] = [];
  for (let part = parts[start]; part?.kind === 'text'; part = parts[start + texts.length]) texts.push(part);
  return texts;
}

function shortened(texts: readonly AnswerText[], length: number): AnswerText[] {
  const kept: AnswerText[] = [];
  let left = length;
  for (const part of texts) {
    if (left === 0) break;
    const text = part.text.slice(0, left);
    left -= text.length;
    kept.push({
      ...part,
      text,
      citations: part.citations?.filter(({ end }) => end <= text.length),
      logprobs: part.logprobs === undefined ? undefined : within(part.logprobs, text),
    });
  }
  return kept;
}

/** One sequence, and how much of it the text ends with (the automaton of Knuth, Morris and Pratt). */
class Matcher {
  readonly sequence: string;
  /** Number of characters of the sequence that the text ends with. */
  matched = 0;
  /** For each prefix of the sequence, the length of the longest shorter prefix that it ends with. */
  readonly #fallback: Uint32Array;

  constructor(sequence: string) {
    this.sequence = sequence;
    this.#fallback = new Uint32Array(sequence.length);
    let length = 0;
    for (let at = 1; at < sequence.length; at++) {
      while (length > 0 && sequence[at] !== sequence[length]) length = this.#fallback[length - 1] as number;
      if (sequence[at] === sequence[length]) length++;
      this.#fallback[at] = length;
    }
  }

  /** @returns whether the sequence has been matched */
  step(code: number): boolean {
    while (this.matched > 0 && this.sequence.charCodeAt(this.matched) !== code)
      this.matched = this.#fallback[this.matched - 1] as number;
    if (this.sequence.charCodeAt(this.matched) === code) this.matched++;
    return this.matched === this.sequence.length;
  }
}

/**
 * Finds the first of several sequences in a text that arrives in pieces. Only holds back text that may be the beginning
 * of a sequence. If two end at the same character, the longer one matches.
 */
export class StopText {
  /** The sequence that was matched, or null. */
  met: string | null = null;
  readonly #matchers: readonly Matcher[];
  /** Text that is held back because it may be the beginning of a sequence. */
  #held = '';

  /** @param sequences must not be empty strings */
  constructor(sequences: readonly string[]) {
    this.#matchers = sequences.map((sequence) => new Matcher(sequence));
  }

  /** @returns the text before the sequence that can be passed on now */
  add(piece: string): string {
    if (this.met !== null) return '';
    const text = this.#held + piece;
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at);
      for (const matcher of this.#matchers)
        if (matcher.step(code) && matcher.sequence.length > (this.met?.length ?? 0))
          this.met = matcher.sequence;
      if (this.met === null) continue;
      this.#held = '';
      return text.slice(0, text.length - piece.length + at + 1 - this.met.length);
    }
    const held = this.#matchers.reduce((most, { matched }) => Math.max(most, matched), 0);
    this.#held = text.slice(text.length - held);
    return text.slice(0, text.length - held);
  }

  /** Called when the text has ended, or something other than text follows. @returns the text that was held back */
  end(): string {
    const held = this.#held;
    this.#held = '';
    for (const matcher of this.#matchers) matcher.matched = 0;
    return held;
  }
}
