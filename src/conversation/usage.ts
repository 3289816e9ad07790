/** What a call consumed, in tokens, as the upstream counted it. */
export interface Usage {
  /** All input tokens, those read from and written to the prompt cache included. */
  readonly input: number;
  /** All output tokens, reasoning included. */
  readonly output: number;
  /** Input tokens that came from the upstream's prompt cache. */
  readonly cached: number;
  /** Input tokens that were written to the upstream's prompt cache. */
  readonly cacheWritten: number;
  /** Output tokens spent on reasoning. */
  readonly reasoning: number;
  /** Searches of the web that the upstream ran, as it counts them; absent for none. */
  readonly searches?: number;
  /** The upstream reported nothing: these are the gateway's own guesses. */
  readonly estimated?: true;
  /** The answer broke off: the output is what was streamed until then, and the input the gateway's guess if need be. */
  readonly partial?: true;
}

/** Usage with the number of searches that belong to it. */
export function withSearches(usage: Usage, searches: number): Usage {
  return searches === 0 ? usage : { ...usage, searches };
}
