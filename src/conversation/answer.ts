import type { ReasoningPart, RefusalPart, TextPart, ToolCallPart } from './request.js';
import type { Usage } from './usage.js';
import type { SearchPart } from './web-search.js';

/** Why an answer ended. */
export type FinishReason =
  | 'stop'
  /** One of the client's stop sequences was met. */
  | 'stopSequence'
  /** The limit of tokens, or the end of the model's window. */
  | 'length'
  | 'toolCalls'
  /** Refused or filtered by the upstream. */
  | 'filtered'
  /** A tool that the upstream runs is not done. */
  | 'paused'
  /** An upstream's reason that is none of these. */
  | 'other';

/** The log probability of one token, as chat and responses spell it. */
export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
  readonly top_logprobs: readonly {
    readonly token: string;
    readonly logprob: number;
    readonly bytes: readonly number[] | null;
  }[];
}

/** A source that a text names. Offsets in characters of the text. */
export interface UrlCitation {
  readonly start: number;
  readonly end: number;
  readonly url: string;
  readonly title: string;
}

export interface AnswerText extends TextPart {
  readonly citations?: readonly UrlCitation[] | undefined;
  readonly logprobs?: readonly TokenLogprob[] | undefined;
}

/** Reasoning has its signature as the token that a client carries: see `signature.ts`. */
export type AnswerPart = AnswerText | RefusalPart | ReasoningPart | ToolCallPart | SearchPart;

/** What a part says in words: the input of a call, the text of any other. */
export function wordsOf(part: AnswerPart): string {
  if (part.kind === 'search') return part.query;
  return part.kind === 'toolCall' ? part.input : part.text;
}

export interface AnswerChoice {
  /** In the order in which the model wrote them. */
  readonly parts: readonly AnswerPart[];
  readonly finish: FinishReason;
  /** The sequence that was met, where the upstream says it. */
  readonly stopSequence: string | null;
}

/** A whole answer, apart from how a protocol words it. */
export interface Answer {
  /** At least one; more only where the client asked for more. */
  readonly choices: readonly AnswerChoice[];
  /** Null where the upstream reported none. */
  readonly usage: Usage | null;
}
