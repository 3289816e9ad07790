import type { Price } from '../config/types.js';
import type { Usage } from '../conversation/usage.js';

/** What a call has consumed that may have a price. */
export interface Consumption {
  /** Null where no tokens are counted. */
  readonly usage: Usage | null;
  /** Of audio or video; counted by whole milliseconds. */
  readonly seconds: number;
  /** 1 for a call; more where one request stands for several. */
  readonly calls: number;
}

/**
 * Costs are counted in femto-dollars (1e-15 USD), of which the price of a token, given for a million of them, is a
 * whole number as long as it has at most nine decimals.
 */
const decimalsOfDollar = 15;
const decimalsPerMillion = decimalsOfDollar - 6;
const decimalsPerThousand = decimalsOfDollar - 3;
const femtoPerNano = 1_000_000n;

/** A price in whole femto-dollars. */
interface RatesIn<Amount> {
  readonly input: Amount;
  readonly output: Amount;
  readonly cached: Amount;
  readonly cacheWritten: Amount;
  readonly call: Amount;
  readonly millisecond: Amount;
}

interface Rates {
  readonly exact: RatesIn<bigint>;
  /** The same as numbers. One that a number cannot hold exactly is above all sums that it can. */
  readonly plain: RatesIn<number>;
}

/** A price belongs to a model of a config and is used for each of its calls. */
const knownRates = new WeakMap<Price, Rates>();

const plainFemtoPerNano = Number(femtoPerNano);
/** Sums up to it, nine dollars, are exact as numbers, with half a nano-dollar added, too. */
const mostPlain = Number.MAX_SAFE_INTEGER - plainFemtoPerNano;

/**
 * The cost of a call in whole nano-dollars (1e-9 USD), computed without rounding but for one at the end, half up.
 * Cached tokens and those written to the cache are charged at their own price in place of that of the input; they are
 * never more than the input. Counts that are no whole numbers are rounded, and those below zero are none.
 * @returns at most `Number.MAX_SAFE_INTEGER`, which is nine million dollars
 * @throws RangeError when a price is negative or no number
 */
export function costOf(price: Price, consumption: Consumption): number {
  const { exact, plain } = ratesOf(price);
  const femto = plainCost(plain, consumption);
  return femto <= mostPlain ? plainNano(femto) : exactCost(exact, consumption);
}

/**
 * The cost in femto-dollars, computed at once for every call: large whole numbers take six times as long. It is exact
 * when it is at most `mostPlain`, since a product or a sum that is above that does not come out below it.
 */
function plainCost(rates: RatesIn<number>, { usage, seconds, calls }: Consumption): number {
  let femto = wholeCount(calls) * rates.call + wholeCount(seconds * 1000) * rates.millisecond;
  if (usage !== null) {
    const input = wholeCount(usage.input);
    const cached = Math.min(wholeCount(usage.cached), input);
    const written = Math.min(wholeCount(usage.cacheWritten), input - cached);
    femto += (input - cached - written) * rates.input + cached * rates.cached;
    femto += written * rates.cacheWritten + wholeCount(usage.output) * rates.output;
  }
  return femto;
}

/** A plain division of numbers this large would be rounded once more. */
function plainNano(femto: number): number {
  const raised = femto + plainFemtoPerNano / 2;
  return (raised - (raised % plainFemtoPerNano)) / plainFemtoPerNano;
}

function exactCost(rates: RatesIn<bigint>, { usage, seconds, calls }: Consumption): number {
  let femto = count(calls) * rates.call + count(seconds * 1000) * rates.millisecond;
  if (usage !== null) {
    const input = count(usage.input);
    const cached = lesser(count(usage.cached), input);
    const written = lesser(count(usage.cacheWritten), input - cached);
    femto += (input - cached - written) * rates.input + cached * rates.cached;
    femto += written * rates.cacheWritten + count(usage.output) * rates.output;
  }
  return nanoOf(femto);
}

/** Nothing that a call may consume costs anything. */
export function isFree({ input, output, cached, cacheWritten, perCall, perSecond }: Price): boolean {
  return input + output + cached + cacheWritten + perCall + perSecond === 0;
}

function ratesOf(price: Price): Rates {
  const known = knownRates.get(price);
  if (known !== undefined) return known;
  const exact: RatesIn<bigint> = {
    input: scaled(price.input, decimalsPerMillion),
    output: scaled(price.output, decimalsPerMillion),
    cached: scaled(price.cached, decimalsPerMillion),
    cacheWritten: scaled(price.cacheWritten, decimalsPerMillion),
    call: scaled(price.perCall, decimalsOfDollar),
    millisecond: scaled(price.perSecond, decimalsPerThousand),
  };
  const plain: RatesIn<number> = {
    input: Number(exact.input),
    output: Number(exact.output),
    cached: Number(exact.cached),
    cacheWritten: Number(exact.cacheWritten),
    call: Number(exact.call),
    millisecond: Number(exact.millisecond),
  };
  const rates = { exact, plain };
  knownRates.set(price, rates);
  return rates;
}

/** A number, by the decimal digits in which it is written, times ten to the power of `decimals`, rounded half up. */
function scaled(value: number, decimals: number): bigint {
  if (!Number.isFinite(value) || value < 0) throw new RangeError(`${value} is no amount of money`);
  const [mantissa = '', exponent = '0'] = `${value}`.split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const shift = decimals + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  return shift >= 0 ? digits * 10n ** BigInt(shift) : dividedHalfUp(digits, 10n ** BigInt(-shift));
}

function dividedHalfUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor / 2n) / divisor;
}

function nanoOf(femto: bigint): number {
  return Number(lesser(dividedHalfUp(femto, femtoPerNano), BigInt(Number.MAX_SAFE_INTEGER)));
}

function lesser(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function count(value: number): bigint {
  return BigInt(wholeCount(value));
}

function wholeCount(value: number): number {
  return value > 0 && Number.isFinite(value) ? Math.round(value) : 0;
}
