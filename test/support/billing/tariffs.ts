import type { ServiceTier } from '../../../src/conversation/usage.js';

/** What a vendor charges for, as units of one call. */
export interface Units {
  /** Text tokens of the input that were in no cache. */
  readonly fresh: number;
  readonly cached: number;
  /** Cache writes for five minutes, and for an hour. */
  readonly cacheWritten: number;
  readonly cacheWrittenHour: number;
  /** Text tokens of the output, including those of reasoning. */
  readonly output: number;
  readonly audioInput: number;
  readonly cachedAudio: number;
  readonly audioOutput: number;
  readonly imageInput: number;
  readonly imageOutput: number;
  readonly searches: number;
  /** Images, or videos. */
  readonly units: number;
  /** Seconds of video or audio. */
  readonly seconds: number;
  /** Of a text that is spoken. */
  readonly characters: number;
  readonly tier: ServiceTier | 'standard';
  /** Size and quality of its images, or size of its video; empty without any. */
  readonly variant: string;
}

type Counted = Exclude<keyof Units, 'tier' | 'variant'>;
/** Nano-dollars for a unit of each. */
type Rates = Readonly<Partial<Record<Counted, number>>>;

export const noUnits: Units = {
  fresh: 0,
  cached: 0,
  cacheWritten: 0,
  cacheWrittenHour: 0,
  output: 0,
  audioInput: 0,
  cachedAudio: 0,
  audioOutput: 0,
  imageInput: 0,
  imageOutput: 0,
  searches: 0,
  units: 0,
  seconds: 0,
  characters: 0,
  tier: 'standard',
  variant: '',
};

/** What a vendor charges for one model, and the same as a price in a gateway's config, in dollars. */
export interface Tariff {
  readonly rates: Rates;
  /** Rates of calls with more input than this. */
  readonly above?: readonly [tokens: number, rates: Rates];
  readonly priority?: Rates;
  /** Factors on all rates. */
  readonly factors?: Readonly<Partial<Record<ServiceTier, number>>>;
  readonly variants?: Readonly<Record<string, Rates>>;
  readonly price: object;
}

export const textTariff: Tariff = {
  rates: {
    fresh: 1250,
    cached: 125,
    cacheWritten: 2000,
    cacheWrittenHour: 2500,
    output: 10_000,
    searches: 10_000_000,
  },
  above: [4000, { fresh: 2500, cached: 250, output: 15_000 }],
  priority: { fresh: 2500, cached: 250, output: 20_000 },
  factors: { flex: 0.5, fast: 6, ultrafast: 8, batch: 0.5, scale: 3 },
  price: {
    input: 1.25,
    cached: 0.125,
    cacheWritten: 2,
    cacheWrittenHour: 2.5,
    output: 10,
    perSearch: 0.01,
    steps: [{ aboveInput: 4000, input: 2.5, cached: 0.25, output: 15 }],
    tiers: {
      flex: 0.5,
      priority: { input: 2.5, cached: 0.25, output: 20 },
      fast: 6,
      ultrafast: 8,
      batch: 0.5,
      scale: 3,
    },
  },
};

export const videoTariff: Tariff = {
  rates: { units: 10_000_000, seconds: 500_000_000 },
  variants: { '1280x720': { seconds: 100_000_000 }, '1920x1080': { seconds: 300_000_000 } },
  price: {
    perCall: 0.01,
    perSecond: 0.5,
    seconds: [
      { resolution: '720p', usd: 0.1 },
      { resolution: '1080p', usd: 0.3 },
    ],
  },
};

export const realtimeTariff: Tariff = {
  rates: {
    fresh: 4000,
    cached: 400,
    output: 16_000,
    audioInput: 32_000,
    cachedAudio: 3000,
    audioOutput: 64_000,
  },
  price: { input: 4, cached: 0.4, output: 16, audioInput: 32, cachedAudio: 3, audioOutput: 64 },
};

/** Returns the cost of units in whole nano-dollars, rounded once. @param factor of the key that is charged */
export function nanoUsdOf(tariff: Tariff, units: Units, factor = 1): number {
  const input = units.fresh + units.cached + units.cacheWritten + units.cacheWrittenHour;
  const [from = 0, more = {}] = tariff.above ?? [];
  const isLong = units.tier !== 'priority' && from > 0 && input > from;
  const rates: Rates = {
    ...tariff.rates,
    ...(isLong ? more : {}),
    ...(units.tier === 'priority' ? tariff.priority : {}),
    ...tariff.variants?.[units.variant],
  };
  let sum = 0;
  for (const name of Object.keys(rates) as Counted[]) sum += units[name] * (rates[name] ?? 0);
  const ofTier = units.tier === 'standard' ? 1 : (tariff.factors?.[units.tier] ?? 1);
  return Math.round(sum * ofTier * factor);
}
