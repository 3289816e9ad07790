/** What a call consumed, in tokens as counted by the upstream. */
export interface Usage {
  /** All input tokens, including those read from and written to the prompt cache. */
  readonly input: number;
  /** Of the largest request, if the upstream has run several for the call, or the session: prices have steps by it. Absent for one. */
  readonly largestInput?: number;
  /** All output tokens, including reasoning. */
  readonly output: number;
  /** Input tokens that came from the upstream's prompt cache. */
  readonly cached: number;
  /** Input tokens that were written to the upstream's prompt cache. */
  readonly cacheWritten: number;
  /** Output tokens spent on reasoning. */
  readonly reasoning: number;
  /** Number of web searches that the upstream reports to have run. Absent for none. */
  readonly searches?: number;
  /** Number of calls that the upstream bills for this one. Absent if it does not say. */
  readonly calls?: number;
  /** Tokens of kinds that have a price of their own. Absent if none are known. */
  readonly parts?: TokenParts;
  /** Service tier of the call. Absent for the standard tier, and if the upstream does not say. */
  readonly tier?: ServiceTier;
  /** Where the upstream served the call, in its own words. Absent if it does not say. */
  readonly geo?: string;
  /** The upstream reported nothing: the gateway estimated these numbers. */
  readonly estimated?: true;
  /**
   * The answer broke off: the output is what was streamed until then, and the input an estimate if none was reported.
   */
  readonly partial?: true;
}

/** Tokens by kind. They are included in the totals of `Usage`. */
export interface TokenParts {
  /** Input tokens of audio. */
  readonly audioInput: number;
  readonly imageInput: number;
  readonly videoInput: number;
  /** Cached input tokens of audio. */
  readonly cachedAudio: number;
  readonly cachedImage: number;
  /** Tokens written to the cache that the upstream keeps for an hour. */
  readonly cacheWrittenHour: number;
  /** Output tokens of audio. */
  readonly audioOutput: number;
  readonly imageOutput: number;
}

export const noParts: TokenParts = {
  audioInput: 0,
  imageInput: 0,
  videoInput: 0,
  cachedAudio: 0,
  cachedImage: 0,
  cacheWrittenHour: 0,
  audioOutput: 0,
  imageOutput: 0,
};

/** What affects the price of an answer besides its tokens. */
interface Charged {
  readonly searches?: number;
  readonly parts?: TokenParts | null;
  readonly tier?: ServiceTier | null;
  readonly geo?: string | null;
}

/** Adds charges to a usage. Omits those that are zero or absent, and returns the usage unchanged if all are. */
export function withCharges(
  usage: Usage,
  { searches = 0, parts = null, tier = null, geo = null }: Charged,
): Usage {
  const hasParts = parts !== null && hasAny(parts);
  if (searches === 0 && !hasParts && tier === null && geo === null) return usage;
  return {
    ...usage,
    ...(searches === 0 ? {} : { searches }),
    ...(hasParts ? { parts } : {}),
    ...(tier === null ? {} : { tier }),
    ...(geo === null ? {} : { geo }),
  };
}

function hasAny(parts: TokenParts): boolean {
  const { audioInput, imageInput, videoInput, cachedAudio, cachedImage, cacheWrittenHour } = parts;
  const ofInput = audioInput + imageInput + videoInput + cachedAudio + cachedImage + cacheWrittenHour;
  return ofInput + parts.audioOutput + parts.imageOutput > 0;
}

/** More tokens than this that only a total has are an error of the upstream: no model makes as many in an answer. */
const mostOfTotal = 262_144;

/**
 * Adds to the input and output of a usage what its upstream counts beside them:
 * - reasoning beside the output, as xAI's total shows
 *   (https://docs.x.ai/docs/key-information/consumption-and-rate-limits), or because it exceeds the output, as Perplexity's
 *   (https://github.com/bgeneto/open-webui-cost-tracker/issues/6);
 * - what only the total has: the cache, at servers that translate messages; sound that is counted in seconds; and
 *   reasoning, at servers that translate Gemini's answers.
 * OpenAI's total is input and output.
 * @param total the upstream's count; not above zero if it has none
 * @param isHeard the input has sound that is counted in seconds
 */
export function withTotal(usage: Usage, total: number, isHeard = false): Usage {
  const { input, output, reasoning } = usage;
  const hidden = total - input - output;
  if (hidden <= 0 && reasoning <= output) return usage;
  const isTrusted = hidden > 0 && hidden <= mostOfTotal && hidden !== input + output;
  const cache = usage.cached + usage.cacheWritten;
  const isBeside =
    reasoning > output || (isTrusted && (hidden === reasoning || hidden === cache + reasoning));
  const besideOutput = isBeside ? reasoning : 0;
  const rest = isTrusted ? Math.max(0, hidden - besideOutput) : 0;
  const isOfInput = input === 0 || isHeard || cache > input || rest === cache || rest === usage.cached;
  if (isOfInput) return { ...usage, input: input + rest, output: output + besideOutput };
  return { ...usage, output: output + besideOutput + rest, reasoning: reasoning === 0 ? rest : reasoning };
}

/** Adds the usage of two answers of one session. Tier and place are those of the later one. */
export function addUsage(before: Usage | null, more: Usage): Usage {
  if (before === null) return more;
  const input = before.input + more.input;
  const largestInput = Math.max(before.largestInput ?? before.input, more.largestInput ?? more.input);
  const sum: Usage = {
    input,
    ...(largestInput < input ? { largestInput } : {}),
    output: before.output + more.output,
    cached: before.cached + more.cached,
    cacheWritten: before.cacheWritten + more.cacheWritten,
    reasoning: before.reasoning + more.reasoning,
  };
  return withCharges(sum, {
    searches: (before.searches ?? 0) + (more.searches ?? 0),
    parts: addParts(before.parts ?? noParts, more.parts ?? noParts),
    tier: more.tier ?? before.tier ?? null,
    geo: more.geo ?? before.geo ?? null,
  });
}

/** Adds usages like `addUsage`. The sum is as inexact as its parts. */
export function addMarkedUsage(before: Usage | null, more: Usage): Usage {
  if (before === null) return more;
  const sum = addUsage(before, more);
  return {
    ...sum,
    ...(before.estimated === true || more.estimated === true ? { estimated: true } : {}),
    ...(before.partial === true || more.partial === true ? { partial: true } : {}),
  };
}

function addParts(one: TokenParts, other: TokenParts): TokenParts {
  return {
    audioInput: one.audioInput + other.audioInput,
    imageInput: one.imageInput + other.imageInput,
    videoInput: one.videoInput + other.videoInput,
    cachedAudio: one.cachedAudio + other.cachedAudio,
    cachedImage: one.cachedImage + other.cachedImage,
    cacheWrittenHour: one.cacheWrittenHour + other.cacheWrittenHour,
    audioOutput: one.audioOutput + other.audioOutput,
    imageOutput: one.imageOutput + other.imageOutput,
  };
}

/** Properties by which prices of images and videos differ. Null: unknown. */
export interface MadeMedia {
  /** `1024x1024` */
  readonly size: string | null;
  readonly quality: string | null;
  /** `1080p` */
  readonly resolution: string | null;
}

/** Service tiers that have a price. The ledger stores their indexes in this list: append new ones. */
export const serviceTiers = ['standard', 'flex', 'priority', 'fast', 'batch', 'scale', 'ultrafast'] as const;
export type ServiceTier = (typeof serviceTiers)[number];

/** The protocols' lower-case words for tiers. Vertex reports them as a kind of traffic. */
const tierWords: ReadonlyMap<string, ServiceTier> = new Map([
  ['flex', 'flex'],
  ['priority', 'priority'],
  ['fast', 'fast'],
  ['ultrafast', 'ultrafast'],
  ['batch', 'batch'],
  ['scale', 'scale'],
  ['on_demand_flex', 'flex'],
  ['on_demand_priority', 'priority'],
  ['provisioned_throughput', 'scale'],
  ['service_tier_flex', 'flex'],
  ['service_tier_priority', 'priority'],
]);

/** @returns null for the standard tier, for unknown or unpriced tiers, and for anything but text */
export function tierOf(word: unknown): ServiceTier | null {
  return typeof word === 'string' ? (tierWords.get(word.toLowerCase()) ?? null) : null;
}

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
