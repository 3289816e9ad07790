import type { ImagePrice, Price, PriceRates, SteppedRates } from '../config/types.js';
import type { MadeMedia, ServiceTier, Usage } from '../conversation/usage.js';

/** What a call has consumed that may have a price. */
interface Consumption {
  /** Null where no tokens are counted. */
  readonly usage: Usage | null;
  /** Of audio or video; counted by whole milliseconds. */
  readonly seconds: number;
  /** 1 for a call; more where one request stands for several. */
  readonly calls: number;
  /** What was made, as far as that has a price of its own; null for nothing of the kind. */
  readonly made?: MadeMedia | null;
}

/**
 * Costs are counted in femto-dollars (1e-15 USD), of which the price of a token, given for a million of them, is a
 * whole number as long as it has, with its factors, at most nine decimals.
 */
const decimalsOfDollar = 15;
const decimalsPerMillion = decimalsOfDollar - 6;
const decimalsPerThousand = decimalsOfDollar - 3;
const femtoPerNano = 1_000_000n;

/** Everything that is counted of a call, in the order in which amounts and rates are kept, and for how much a price is. */
const decimalsOf: Readonly<Record<keyof PriceRates, number>> = {
  input: decimalsPerMillion,
  output: decimalsPerMillion,
  cached: decimalsPerMillion,
  cacheWritten: decimalsPerMillion,
  cacheWrittenHour: decimalsPerMillion,
  audioInput: decimalsPerMillion,
  audioOutput: decimalsPerMillion,
  cachedAudio: decimalsPerMillion,
  imageInput: decimalsPerMillion,
  videoInput: decimalsPerMillion,
  imageOutput: decimalsPerMillion,
  cachedImage: decimalsPerMillion,
  reasoning: decimalsPerMillion,
  perSearch: decimalsOfDollar,
  perCall: decimalsOfDollar,
  perSecond: decimalsPerThousand,
};
const rateNames = Object.keys(decimalsOf) as readonly (keyof PriceRates)[];
const ofCalls = rateNames.indexOf('perCall');
const ofSeconds = rateNames.indexOf('perSecond');

/** A price in whole femto-dollars. */
interface Rate {
  readonly exact: bigint;
  /** The same as a number. One that a number cannot hold exactly is above all sums that it can. */
  readonly plain: number;
}

/** Rates by their place among `rateNames`. */
type Rates = readonly Rate[];

/** What holds for one tier, place and factor. */
interface Tariff {
  readonly tier: ServiceTier;
  readonly geo: string;
  readonly factor: number;
  readonly rates: Rates;
  readonly steps: readonly { readonly above: number; readonly rates: Rates }[];
  readonly images: readonly (ImagePrice & Rate)[];
  readonly seconds: readonly ({ readonly resolution: string } & Rate)[];
}

/**
 * A price belongs to a model or target of a config and is used for each of its calls. There are as many tariffs of one
 * as there are tiers and places with a factor, times the factors of groups.
 */
const knownTariffs = new WeakMap<Price, Tariff[]>();

const plainFemtoPerNano = Number(femtoPerNano);
/** Sums up to it, nine dollars, are exact as numbers, with half a nano-dollar added, too. */
const mostPlain = Number.MAX_SAFE_INTEGER - plainFemtoPerNano;

/** How much there is of everything, of the call at hand. */
const amounts = new Float64Array(rateNames.length);

/**
 * The cost of a call in whole nano-dollars (1e-9 USD), computed without rounding but for one at the end, half up.
 * Each token is charged once: those of a kind with a price of its own at that price, the others at that of the input or
 * of the output, and none of them are more than all. Counts that are no whole numbers are rounded, and those below zero
 * are none.
 * @param factor on all of it
 * @returns at most `Number.MAX_SAFE_INTEGER`, which is nine million dollars
 * @throws RangeError when a price or the factor is negative or no number
 */
export function costOf(price: Price, consumption: Consumption, factor = 1): number {
  const { usage, made = null } = consumption;
  const tariff = tariffOf(price, usage, factor);
  const rates = usage === null ? tariff.rates : ratesOf(tariff, usage.input);
  const perCall = (made === null ? null : imageRate(tariff, made)) ?? (rates[ofCalls] as Rate);
  const perSecond = (made === null ? null : secondRate(tariff, made)) ?? (rates[ofSeconds] as Rate);
  measure(consumption);
  // At once for every call: large whole numbers take six times as long. It is exact when it is at most `mostPlain`,
  // since a product or a sum that is above that does not come out below it.
  let femto = 0;
  for (let index = 0; index < ofCalls; index++)
    femto += (amounts[index] as number) * (rates[index] as Rate).plain;
  femto += (amounts[ofCalls] as number) * perCall.plain + (amounts[ofSeconds] as number) * perSecond.plain;
  if (femto <= mostPlain) return plainNano(femto);
  let exact = 0n;
  for (let index = 0; index < ofCalls; index++)
    exact += BigInt(amounts[index] as number) * (rates[index] as Rate).exact;
  exact += BigInt(amounts[ofCalls] as number) * perCall.exact;
  return nanoOf(exact + BigInt(amounts[ofSeconds] as number) * perSecond.exact);
}

/** Nothing that a call may consume costs anything. */
export function isFree({ rates, steps, images, seconds, tiers }: Price): boolean {
  return (
    isNothing(rates) &&
    steps.every((step) => isNothing(step.rates)) &&
    images.every(({ usd }) => usd === 0) &&
    seconds.every(({ usd }) => usd === 0) &&
    Object.values(tiers).every(
      (tier) =>
        typeof tier === 'number' ||
        (isNothing(tier.rates) && tier.steps.every((step) => isNothing(step.rates))),
    )
  );
}

function isNothing(rates: PriceRates): boolean {
  return rateNames.every((name) => rates[name] === 0);
}

/** Fills `amounts`, in the order of `rateNames`. */
function measure({ usage, seconds, calls }: Consumption): void {
  amounts.fill(0);
  amounts[ofCalls] = wholeCount(calls);
  amounts[ofSeconds] = wholeCount(seconds * 1000);
  if (usage === null) return;
  const { parts } = usage;
  // What is cached or written is told apart first, then what of the rest is no text.
  let left = wholeCount(usage.input);
  const take = (wanted: number): number => {
    const taken = Math.min(wholeCount(wanted), left);
    left -= taken;
    return taken;
  };
  const cached = take(usage.cached);
  const written = take(usage.cacheWritten);
  const cachedAudio = Math.min(wholeCount(parts?.cachedAudio ?? 0), cached);
  const cachedImage = Math.min(wholeCount(parts?.cachedImage ?? 0), cached - cachedAudio);
  const writtenHour = Math.min(wholeCount(parts?.cacheWrittenHour ?? 0), written);
  const audioInput = take((parts?.audioInput ?? 0) - cachedAudio);
  const imageInput = take((parts?.imageInput ?? 0) - cachedImage);
  const videoInput = take(parts?.videoInput ?? 0);
  const input = left;
  left = wholeCount(usage.output);
  const audioOutput = take(parts?.audioOutput ?? 0);
  const imageOutput = take(parts?.imageOutput ?? 0);
  const reasoning = take(usage.reasoning);
  amounts[0] = input;
  amounts[1] = left;
  amounts[2] = cached - cachedAudio - cachedImage;
  amounts[3] = written - writtenHour;
  amounts[4] = writtenHour;
  amounts[5] = audioInput;
  amounts[6] = audioOutput;
  amounts[7] = cachedAudio;
  amounts[8] = imageInput;
  amounts[9] = videoInput;
  amounts[10] = imageOutput;
  amounts[11] = cachedImage;
  amounts[12] = reasoning;
  amounts[13] = wholeCount(usage.searches ?? 0);
}

/** A plain division of numbers this large would be rounded once more. */
function plainNano(femto: number): number {
  const raised = femto + plainFemtoPerNano / 2;
  return (raised - (raised % plainFemtoPerNano)) / plainFemtoPerNano;
}

function ratesOf({ rates, steps }: Tariff, input: number): Rates {
  for (let index = steps.length - 1; index >= 0; index--) {
    const step = steps[index];
    if (step !== undefined && input > step.above) return step.rates;
  }
  return rates;
}

/** The first price that is not of another size or quality. */
function imageRate({ images }: Tariff, made: MadeMedia): Rate | null {
  for (const image of images) {
    if (image.size !== null && image.size !== made.size) continue;
    if (image.quality === null || image.quality === made.quality) return image;
  }
  return null;
}

function secondRate({ seconds }: Tariff, { resolution }: MadeMedia): Rate | null {
  for (const second of seconds) if (second.resolution === resolution) return second;
  return null;
}

function tariffOf(price: Price, usage: Usage | null, factor: number): Tariff {
  const tier = usage?.tier ?? 'standard';
  // One that has no factor costs as any other, and any word may stand there.
  const geo = usage?.geo !== undefined && Object.hasOwn(price.geos, usage.geo) ? usage.geo : '';
  let tariffs = knownTariffs.get(price);
  if (tariffs === undefined) {
    tariffs = [];
    knownTariffs.set(price, tariffs);
  }
  for (const known of tariffs)
    if (known.tier === tier && known.factor === factor && known.geo === geo) return known;
  const made = makeTariff(price, { tier, geo, factor });
  tariffs.push(made);
  return made;
}

function makeTariff(price: Price, { tier, geo, factor }: Pick<Tariff, 'tier' | 'geo' | 'factor'>): Tariff {
  const ofTier = price.tiers[tier] ?? 1;
  const { rates, steps }: SteppedRates = typeof ofTier === 'number' ? price : ofTier;
  const factors = typeof ofTier === 'number' ? [factor, ofTier] : [factor];
  const ofTokens = price.geos[geo] ?? 1;
  const rateOf = (usd: number, decimals: number): Rate => {
    const isOfTokens = decimals === decimalsPerMillion;
    const exact = scaled(isOfTokens ? [usd, ...factors, ofTokens] : [usd, ...factors], decimals);
    return { exact, plain: Number(exact) };
  };
  const all = (from: PriceRates): Rates => rateNames.map((name) => rateOf(from[name], decimalsOf[name]));
  return {
    tier,
    geo,
    factor,
    rates: all(rates),
    steps: steps.map((step) => ({ above: step.above, rates: all(step.rates) })),
    images: price.images.map((image) => ({ ...image, ...rateOf(image.usd, decimalsOfDollar) })),
    seconds: price.seconds.map(({ resolution, usd }) => ({
      resolution,
      ...rateOf(usd, decimalsPerThousand),
    })),
  };
}

/**
 * The product of numbers, by the decimal digits in which they are written, times ten to the power of `decimals`, rounded
 * half up.
 */
function scaled(values: readonly number[], decimals: number): bigint {
  let digits = 1n;
  let shift = decimals;
  for (const value of values) {
    if (!Number.isFinite(value) || value < 0) throw new RangeError(`${value} is no amount of money`);
    const [mantissa = '', exponent = '0'] = `${value}`.split('e');
    const [whole = '', fraction = ''] = mantissa.split('.');
    digits *= BigInt(whole + fraction);
    shift += Number(exponent) - fraction.length;
  }
  return shift >= 0 ? digits * 10n ** BigInt(shift) : dividedHalfUp(digits, 10n ** BigInt(-shift));
}

function dividedHalfUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor / 2n) / divisor;
}

function nanoOf(femto: bigint): number {
  const nano = dividedHalfUp(femto, femtoPerNano);
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  return Number(nano < most ? nano : most);
}

function wholeCount(value: number): number {
  return value > 0 && Number.isFinite(value) ? Math.round(value) : 0;
}
