import type { ReasoningPart, RefusalPart, TextPart, ToolCallPart } from './request.js';
import type { Usage } from './usage.js';
import type { SearchPart } from './web-search.js';

/** Why an answer ended. */
export type FinishReason =
  | 'stop'
  /** The model wrote one of the client's stop sequences. */
  | 'stopSequence'
  /** The token limit or the end of the model's context window was reached. */
  | 'length'
  | 'toolCalls'
  /** The upstream refused or filtered the answer. */
  | 'filtered'
  /** A tool that the upstream runs has not finished. */
  | 'paused'
  /** A reason of an upstream that is not listed here. */
  | 'other';

/** Log probability of one token, in the form that chat and responses share. */
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

/** A source that a text cites. Offsets count characters of the text. */
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

/** Signatures of reasoning are in the form that a client carries: see `signature.ts`. */
export type AnswerPart = AnswerText | RefusalPart | ReasoningPart | ToolCallPart | SearchPart;

/** Returns the words of a part: the input of a call, the query of a search, the text of any other part. */
export function wordsOf(part: AnswerPart): string {
  if (part.kind === 'search') return part.query;
  return part.kind === 'toolCall' ? part.input : part.text;
}

export interface AnswerChoice {
  /** In the order in which the model wrote them. */
  readonly parts: readonly AnswerPart[];
  readonly finish: FinishReason;
  /** The matched stop sequence, if the upstream reports it. */
  readonly stopSequence: string | null;
}

/** A whole answer, independent of the protocol. */
export interface Answer {
  /** At least one. More only if the client requested more. */
  readonly choices: readonly AnswerChoice[];
  /** Null if the upstream reported none. */
  readonly usage: Usage | null;
}
