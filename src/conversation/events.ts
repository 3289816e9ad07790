import type { GatewayError } from '../errors.js';
import type { FinishReason, TokenLogprob, UrlCitation } from './answer.js';
import type { Usage } from './usage.js';
import type { SearchPart } from './web-search.js';

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
