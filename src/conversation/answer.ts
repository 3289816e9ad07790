import type { GatewayError } from '../errors.js';
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
  /** The upstream has interrupted the turn, such as after too many calls of a tool that it runs itself. */
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

/**
 * One event of a streamed answer, independent of the protocol.
 *
 * `start` is first. The last event is a single `end` or `error`. Between a `callStart` and its `callEnd`, an encoder
 * only receives that call's arguments; `stream/sequence.ts` ensures this, and at least one `callArguments`. Each choice
 * that began has one `finish`. `usage` may precede or follow it. `choice` is 0 unless the client requested several.
 */
export type StreamEvent =
  | { readonly kind: 'start'; readonly usage: Usage | null }
  | {
      readonly kind: 'text';
      readonly choice: number;
      readonly text: string;
      readonly logprobs?: readonly TokenLogprob[] | undefined;
    }
  /** Offsets count from the start of the choice's text. */
  | { readonly kind: 'citation'; readonly choice: number; readonly citation: UrlCitation }
  /** A search that the upstream ran, sent when it is complete. */
  | (SearchPart & { readonly choice: number })
  | { readonly kind: 'refusal'; readonly choice: number; readonly text: string }
  | { readonly kind: 'reasoning'; readonly choice: number; readonly text: string }
  /**
   * The token that a client carries (`signature.ts`). It ends the reasoning before it. Without any, it belongs to
   * reasoning that is not shown.
   */
  | { readonly kind: 'signature'; readonly choice: number; readonly signature: string }
  | {
      readonly kind: 'callStart';
      readonly choice: number;
      /** Index of the call in its choice. */
      readonly call: number;
      /** Empty if the upstream gave none. */
      readonly id: string;
      readonly name: string;
      readonly custom: boolean;
      /** See `ToolCallPart.signature`. */
      readonly signature?: string | undefined;
    }
  | {
      readonly kind: 'callArguments';
      readonly choice: number;
      readonly call: number;
      readonly text: string;
    }
  | { readonly kind: 'callEnd'; readonly choice: number; readonly call: number }
  | {
      readonly kind: 'finish';
      readonly choice: number;
      readonly reason: FinishReason;
      readonly stopSequence: string | null;
    }
  /** Totals, which replace earlier ones. */
  | { readonly kind: 'usage'; readonly usage: Usage }
  | { readonly kind: 'error'; readonly error: GatewayError }
  | { readonly kind: 'end' };
