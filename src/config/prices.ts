import { type ServiceTier, serviceTiers } from '../conversation/usage.js';
import type { PriceSettings } from './price-schema.js';
import type { Price, PriceRates, PriceStep, SteppedRates } from './types.js';

/** Rates in a file. Those that are missing follow from others. */
type StatedRates = Partial<PriceRates>;
type StatedSteps = NonNullable<PriceSettings['steps']>;

/** Fills in a price's defaults. A part without a price of its own costs as much as what it is a part of. */
export function resolvePrice({ images, seconds, steps, tiers, geos, ...stated }: PriceSettings): Price {
  return {
    ...steppedRates(stated, steps),
    images: (images ?? []).map(({ size = null, quality = null, usd }) => ({ size, quality, usd })),
    seconds: seconds ?? [],
    tiers: resolveTiers(stated, tiers ?? {}),
    geos: geos ?? {},
  };
}

function resolveTiers(stated: StatedRates, tiers: NonNullable<PriceSettings['tiers']>): Price['tiers'] {
  const resolved: Partial<Record<ServiceTier, number | SteppedRates>> = {};
  for (const name of serviceTiers) {
    const tier = name === 'standard' ? undefined : tiers[name];
    if (tier === undefined) continue;
    if (typeof tier === 'number') resolved[name] = tier;
    else {
      const { steps, ...rates } = tier;
      resolved[name] = steppedRates({ ...stated, ...rates }, steps);
    }
  }
  return resolved;
}

function steppedRates(stated: StatedRates, steps: StatedSteps = []): SteppedRates {
  return { rates: ratesOf(stated), steps: stepsOf(stated, steps) };
}

function stepsOf(stated: StatedRates, steps: StatedSteps): readonly PriceStep[] {
  return steps
    .map(({ aboveInput, ...rates }) => ({ above: aboveInput, rates: ratesOf({ ...stated, ...rates }) }))
    .sort((a, b) => a.above - b.above);
}

function ratesOf(stated: StatedRates): PriceRates {
  const { input = 0, output = 0 } = stated;
  const { cacheWritten = input, audioInput = input, imageInput = input } = stated;
  return {
    input,
    output,
    cached: stated.cached ?? input,
    cacheWritten,
    cacheWrittenHour: stated.cacheWrittenHour ?? cacheWritten,
    audioInput,
    audioOutput: stated.audioOutput ?? output,
    cachedAudio: stated.cachedAudio ?? stated.cached ?? audioInput,
    imageInput,
    videoInput: stated.videoInput ?? input,
    imageOutput: stated.imageOutput ?? output,
    cachedImage: stated.cachedImage ?? stated.cached ?? imageInput,
    reasoning: stated.reasoning ?? output,
    perSearch: stated.perSearch ?? 0,
    perCall: stated.perCall ?? 0,
    perSecond: stated.perSecond ?? 0,
  };
}
