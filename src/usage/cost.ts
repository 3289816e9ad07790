import type { ImagePrice, Price, PriceRates, SteppedRates } from '../config/types.js';
import type { MadeMedia, ServiceTier, Usage } from '../conversation/usage.js';

/** What a call is charged for, by the price of a model or target. */
interface Charged {
  /** Null if no tokens are counted. */
  readonly usage: Usage | null;
  /** Of audio or video; counted in whole milliseconds. */
  readonly seconds: number;
  /** Of a text that is spoken. Default: none. */
  readonly characters?: number;
  /** 1 for a call; more if one request stands for several. */
  readonly units: number;
  /** The images or videos made, whose properties may have prices of their own; null for none. */
  readonly made?: MadeMedia | null;
}

/**
 * Costs are counted in femto-dollars (1e-15 USD). In these, a token's price is a whole number if its price per million,
 * multiplied by its factors, has at most nine decimals.
 */
const decimalsOfDollar = 15;
const decimalsPerMillion = decimalsOfDollar - 6;
const decimalsPerThousand = decimalsOfDollar - 3;
const femtoPerNano = 1_000_000n;

/** Everything counted for a call, in the order of amounts and rates, with the decimals of the unit that is priced. */
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
  characters: decimalsPerMillion,
  perSearch: decimalsOfDollar,
  perCall: decimalsOfDollar,
  perSecond: decimalsPerThousand,
};
const rateNames = Object.keys(decimalsOf) as readonly (keyof PriceRates)[];
const ofCharacters = rateNames.indexOf('characters');
const ofCalls = rateNames.indexOf('perCall');
const ofSeconds = rateNames.indexOf('perSecond');

/** A price in whole femto-dollars. */
interface Rate {
  readonly exact: bigint;
  /** The same as a number. A rate that a number cannot hold exactly exceeds `maxPlain`. */
  readonly plain: number;
}

/** Rates in the order of `rateNames`. */
type Rates = readonly Rate[];

/** The rates for one tier, region and factor. */
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
 * The tariffs of each price, which belongs to a model or target of a config. A price has one tariff per tier, region with
 * a factor, and factor of groups.
 */
const knownTariffs = new WeakMap<Price, Tariff[]>();

const plainFemtoPerNano = Number(femtoPerNano);
/** Sums up to this, nine dollars, are exact as numbers, also with half a nano-dollar added. */
const maxPlain = Number.MAX_SAFE_INTEGER - plainFemtoPerNano;

/** The amounts of the current call, in the order of `rateNames`. */
const amounts = new Float64Array(rateNames.length);

/**
 * The cost of a call in whole nano-dollars (1e-9 USD), rounded once at the end, half up. Each token is charged once: at
 * the price of its kind if that has one, else at the price of input or output. The tokens of a kind never exceed those of
 * the input or output. Fractional counts are rounded, and negative ones count as zero.
 * @param factor multiplies the whole cost
 * @returns at most `Number.MAX_SAFE_INTEGER`, which is nine million dollars
 * @throws RangeError when a price or the factor is negative or not a number
 */
export function costOf(price: Price, charged: Charged, factor = 1): number {
  const { usage, made = null } = charged;
  const tariff = tariffOf(price, usage, factor);
  const rates = usage === null ? tariff.rates : ratesOf(tariff, usage.largestInput ?? usage.input);
  const perCall = (made === null ? null : imageRate(tariff, made)) ?? (rates[ofCalls] as Rate);
  const perSecond = (made === null ? null : secondRate(tariff, made)) ?? (rates[ofSeconds] as Rate);
  measure(charged);
  // Plain numbers first, since bigints take six times as long. The result is exact if it is at most `maxPlain`, since a
  // product or sum above that is never rounded to below it.
  let femto = 0;
  for (let index = 0; index < ofCalls; index++)
    femto += (amounts[index] as number) * (rates[index] as Rate).plain;
  femto += (amounts[ofCalls] as number) * perCall.plain + (amounts[ofSeconds] as number) * perSecond.plain;
  if (femto <= maxPlain) return plainNano(femto);
  let exact = 0n;
  for (let index = 0; index < ofCalls; index++)
    exact += BigInt(amounts[index] as number) * (rates[index] as Rate).exact;
  exact += BigInt(amounts[ofCalls] as number) * perCall.exact;
  return nanoOf(exact + BigInt(amounts[ofSeconds] as number) * perSecond.exact);
}

/** Whether all rates of a price are zero. */
export function costsNothing({ rates, steps, images, seconds, tiers }: Price): boolean {
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

/** Whether a price is one for tokens and nothing else, so that an answer costs nothing unless its tokens are known. */
export function isOfTokensOnly(price: Price | null): boolean {
  if (price === null) return false;
  const { rates, images, seconds } = price;
  if (rates.perCall + rates.perSecond + rates.characters > 0 || images.length + seconds.length > 0)
    return false;
  return hasTokenRate(rates);
}

/** Whether tokens have a price. */
export function hasTokenRate({
  input,
  output,
  audioInput,
  audioOutput,
  imageInput,
  imageOutput,
}: PriceRates): boolean {
  return input + output + audioInput + audioOutput + imageInput + imageOutput > 0;
}

function isNothing(rates: PriceRates): boolean {
  return rateNames.every((name) => rates[name] === 0);
}

/** Fills `amounts`, in the order of `rateNames`. */
function measure({ usage, seconds, characters = 0, units }: Charged): void {
  amounts.fill(0);
  amounts[ofCalls] = wholeCount(units);
  amounts[ofSeconds] = wholeCount(seconds * 1000);
  amounts[ofCharacters] = wholeCount(characters);
  if (usage === null) return;
  const { parts } = usage;
  // Cached and written tokens are taken first, then those of the rest that are not text.
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
  amounts[14] = wholeCount(usage.searches ?? 0);
}

/** Rounds half up. A plain division of numbers this large would round a second time. */
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

/** The first price whose size and quality match, or are open. */
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
  // A region without a factor has the base price; an upstream may report any word.
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
  const rateOf = (usd: number, decimals: number, more: readonly number[] = []): Rate => {
    const exact = scaled([usd, ...factors, ...more], decimals);
    return { exact, plain: Number(exact) };
  };
  const all = (from: PriceRates): Rates =>
    rateNames.map((name, index) =>
      rateOf(from[name], decimalsOf[name], index < ofCharacters ? [ofTokens] : []),
    );
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
 * The product of numbers, from their decimal digits, times ten to the power of `decimals`, rounded half up.
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
