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
  /** For how many calls the upstream bills this one, as it says; absent where it does not. */
  readonly calls?: number;
  /** Which of the tokens are of a kind with a price of its own; absent where none is known to be. */
  readonly parts?: TokenParts;
  /** How the upstream has served the call; absent for the standard tier, and where it does not say. */
  readonly tier?: ServiceTier;
  /** Where the upstream has served it, in its own word; absent where it does not say. */
  readonly geo?: string;
  /** The upstream reported nothing: these are the gateway's own guesses. */
  readonly estimated?: true;
  /** The answer broke off: the output is what was streamed until then, and the input the gateway's guess if need be. */
  readonly partial?: true;
}

/** Tokens that are counted among those of a usage. */
export interface TokenParts {
  /** Of the input. */
  readonly audioInput: number;
  readonly imageInput: number;
  readonly videoInput: number;
  /** Of the cached ones. */
  readonly cachedAudio: number;
  readonly cachedImage: number;
  /** Of those that were written to the cache: those that it keeps for an hour. */
  readonly cacheWrittenHour: number;
  /** Of the output. */
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

/** What an answer tells beside its tokens of what it costs. */
interface Charged {
  readonly searches?: number;
  readonly parts?: TokenParts | null;
  readonly tier?: ServiceTier | null;
  readonly geo?: string | null;
}

/** Usage with what else belongs to it; what is nothing is left out, and stands as it was. */
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

/** The sum of what two answers of one session have used; of their tiers and places the later one. */
export function addUsage(before: Usage | null, more: Usage): Usage {
  if (before === null) return more;
  const sum: Usage = {
    input: before.input + more.input,
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

/** What tells images and videos of different prices apart; null for what is not known. */
export interface MadeMedia {
  /** `1024x1024` */
  readonly size: string | null;
  readonly quality: string | null;
  /** `1080p` */
  readonly resolution: string | null;
}

/**
 * How upstreams serve calls, as far as it has a price. The ledger has them by their places in this list: new ones come
 * last.
 */
export const serviceTiers = ['standard', 'flex', 'priority', 'fast', 'batch', 'scale'] as const;
export type ServiceTier = (typeof serviceTiers)[number];

/** What protocols call them, in lower case. Vertex tells them by the kind of its traffic. */
const tierWords: ReadonlyMap<string, ServiceTier> = new Map([
  ['flex', 'flex'],
  ['priority', 'priority'],
  ['fast', 'fast'],
  ['batch', 'batch'],
  ['scale', 'scale'],
  ['on_demand_flex', 'flex'],
  ['on_demand_priority', 'priority'],
  ['provisioned_throughput', 'scale'],
  ['service_tier_flex', 'flex'],
  ['service_tier_priority', 'priority'],
]);

/** @returns null for the standard tier, for what is no tier that has a price, and for what is no text */
export function tierOf(word: unknown): ServiceTier | null {
  return typeof word === 'string' ? (tierWords.get(word.toLowerCase()) ?? null) : null;
}
