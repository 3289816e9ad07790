import type { Usage } from './usage.js';

/*
 * Decides whether a call can have had the usage that an upstream reports. A count that a bug or a hostile upstream has made
 * up would use up the budget of a key for the rest of its period.
 */

/** Most tokens that a model takes and generates. Null if the config does not say. */
export interface ModelTokens {
  readonly input: number | null;
  readonly output: number | null;
}

export const unknownTokens: ModelTokens = { input: null, output: null };

/** What a model of which nothing is known is taken to take, or to generate, in one request. */
const presumedTokens = 1_000_000;
/** An upstream may run a model many times for one call: with tools of its own, for several answers, for many documents. */
const timesPerCall = 100;
/**
 * A report up to this is believed whatever the config says: a small number there may only cap what calls reserve, and a
 * report that was not believed would make them nearly free.
 */
const alwaysBelieved = 1_000_000;
const mostSearches = 10_000;
/** Most images, and most search units of a rerank. */
const mostCalls = 10_000;
const longestSeconds = 86_400;
/** Bytes of a second in the most compact encoding of speech in use. */
const leastRate = 500;

/**
 * @param tokens of the model
 * @param inputEstimate estimated input tokens of the request
 */
export function isPlausible(usage: Usage, tokens: ModelTokens, inputEstimate: number): boolean {
  const mostInput = Math.max(mostOf(tokens.input), timesPerCall * inputEstimate);
  const mostOutput = mostOf(tokens.output);
  const { input, output, cached, cacheWritten, reasoning, searches = 0, calls = 0, parts } = usage;
  if (Math.max(input, cached, cacheWritten) > mostInput || Math.max(output, reasoning) > mostOutput)
    return false;
  if (searches > mostSearches || calls > mostCalls) return false;
  if (parts === undefined) return true;
  const { audioInput, imageInput, videoInput, cachedAudio, cachedImage, cacheWrittenHour } = parts;
  return (
    Math.max(audioInput, imageInput, videoInput, cachedAudio, cachedImage, cacheWrittenHour) <= mostInput &&
    Math.max(parts.audioOutput, parts.imageOutput) <= mostOutput
  );
}

/** @param configured tokens of one request; null if the config does not say */
function mostOf(configured: number | null): number {
  return Math.max(timesPerCall * (configured ?? presumedTokens), alwaysBelieved);
}

/** Checks what the upstream of one answer reports. */
export class UsageCheck {
  /** What it has reported and no call can have had; null for none. */
  implausible: Usage | null = null;
  readonly #tokens: ModelTokens;
  readonly #inputEstimate: number;

  constructor(tokens: ModelTokens, inputEstimate: number) {
    this.#tokens = tokens;
    this.#inputEstimate = inputEstimate;
  }

  /** Returns null for a usage that is not plausible: it counts as not reported. */
  checked(usage: Usage | null): Usage | null {
    if (usage === null || isPlausible(usage, this.#tokens, this.#inputEstimate)) return usage;
    this.implausible = usage;
    return null;
  }
}

/**
 * Returns the reported seconds of a recording or a sound, or 0 if it cannot last that long.
 * @param bytes that passed of it; 0 if it was fetched by URL
 */
export function plausibleSeconds(seconds: number, bytes: number): number {
  return seconds <= longestSeconds + bytes / leastRate ? seconds : 0;
}
