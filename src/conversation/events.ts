import type { GatewayError } from '../errors.js';
import type { FinishReason, TokenLogprob, UrlCitation } from './answer.js';
import type { Usage } from './usage.js';
import type { SearchPart } from './web-search.js';

/**
 * One step of a streamed answer, apart from how a protocol words it.
 *
 * `start` comes first, `end` or `error` last and once. Between a `callStart` and its `callEnd` an encoder gets nothing
 * but the arguments of that call (`stream/sequence.ts` sees to it, and to at least one `callArguments`). `finish` comes
 * once for each choice that began, `usage` before or after it. `choice` is 0 unless the client asked for several.
 */
export type StreamEvent =
  | { readonly kind: 'start'; readonly usage: Usage | null }
  | {
      readonly kind: 'text';
      readonly choice: number;
      readonly text: string;
      readonly logprobs?: readonly TokenLogprob[] | undefined;
    }
  /** Offsets count from the start of the choice’s text. */
  | { readonly kind: 'citation'; readonly choice: number; readonly citation: UrlCitation }
  /** A search that the upstream ran, when all is known of it. */
  | (SearchPart & { readonly choice: number })
  | { readonly kind: 'refusal'; readonly choice: number; readonly text: string }
  | { readonly kind: 'reasoning'; readonly choice: number; readonly text: string }
  /**
   * The token that a client carries (`signature.ts`). It belongs to the reasoning before it, which it ends; where none came, to
   * reasoning that is not shown.
   */
  | { readonly kind: 'signature'; readonly choice: number; readonly signature: string }
  | {
      readonly kind: 'callStart';
      readonly choice: number;
      /** Number of the call in its choice, from 0. */
      readonly call: number;
      /** Empty where the upstream gave none. */
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
  /** Totals, replacing any before. */
  | { readonly kind: 'usage'; readonly usage: Usage }
  | { readonly kind: 'error'; readonly error: GatewayError }
  | { readonly kind: 'end' };
