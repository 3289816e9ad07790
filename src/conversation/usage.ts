/** What a call consumed, in tokens, as the upstream counted it. */
export interface Usage {
  /** All input tokens, cached ones included. */
  readonly input: number;
  /** All output tokens, reasoning included. */
  readonly output: number;
  /** Input tokens that came from the upstream's prompt cache. */
  readonly cached: number;
  /** Output tokens spent on reasoning. */
  readonly reasoning: number;
}
