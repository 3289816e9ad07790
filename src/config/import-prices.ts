import { applyEdits, modify } from 'jsonc-parser';
import {
  isObject,
  type JsonObject,
  listOf,
  numberOrNull,
  objectOf,
  parseJson as parseJsonText,
  textOf,
  textOrNull,
} from '../wire/json.js';
import { parseJson } from './load.js';
import type { PriceSettings } from './price-schema.js';
import { ConfigError, propertiesOf, propertyOf } from './problem.js';
import type { PriceRates } from './types.js';

/*
 * The public price list of LiteLLM, `model_prices_and_context_window.json`. It maps a model's name to USD for one of
 * each unit (https://docs.litellm.ai/docs/proxy/model_cost_map).
 */

/** A price converted from an entry of the list. */
interface ListedPrice {
  readonly price: PriceSettings;
  /** Members of the entry about money that have no counterpart here. */
  readonly unused: readonly string[];
}

type RateName = keyof PriceRates;
type MutableRates = { -readonly [Name in RateName]?: number };
type TierName = keyof NonNullable<PriceSettings['tiers']>;

/** Token prices by member name. A member's name may continue with a length of the input, and then with a tier. */
const tokenMembers: ReadonlyMap<string, RateName> = new Map([
  ['input_cost_per_token', 'input'],
  ['output_cost_per_token', 'output'],
  ['cache_read_input_token_cost', 'cached'],
  ['input_cost_per_token_cache_hit', 'cached'],
  ['cache_creation_input_token_cost', 'cacheWritten'],
  ['cache_creation_input_token_cost_above_1hr', 'cacheWrittenHour'],
  ['input_cost_per_audio_token', 'audioInput'],
  ['output_cost_per_audio_token', 'audioOutput'],
  ['cache_read_input_audio_token_cost', 'cachedAudio'],
  ['cache_read_input_token_cost_per_audio_token', 'cachedAudio'],
  ['input_cost_per_image_token', 'imageInput'],
  ['input_cost_per_video_token', 'videoInput'],
  ['output_cost_per_image_token', 'imageOutput'],
  ['cache_read_input_image_token_cost', 'cachedImage'],
  ['output_cost_per_reasoning_token', 'reasoning'],
]);
const tokenRates: ReadonlySet<RateName> = new Set(tokenMembers.values());
const tierSuffix = /_(flex|priority|ultrafast|batches)$/;
const lengthSuffix = /_above_(\d{1,6})k_tokens$/;
/** If several are present, they state one price: entries of transcription models have it twice. */
const secondMembers = ['input_cost_per_second', 'output_cost_per_second', 'output_cost_per_video_per_second'];
const resolutionMember = /^output_cost_per_second_(\d{2,4}[pk])$/;
const aboutMoney = /cost|pric|multiplier/;

/** What a rate is a part of, whose price it has without one of its own. */
const wholes: readonly (readonly [part: RateName, whole: RateName])[] = [
  ['reasoning', 'output'],
  ['audioOutput', 'output'],
  ['imageOutput', 'output'],
  ['audioInput', 'input'],
  ['imageInput', 'input'],
  ['videoInput', 'input'],
  ['cachedAudio', 'cached'],
  ['cachedImage', 'cached'],
];

/** The members of an entry, before it is known which of them mean the same. */
interface Draft {
  readonly rates: MutableRates;
  readonly steps: Map<number, MutableRates>;
  readonly tiers: Map<TierName, { readonly rates: MutableRates; readonly steps: Map<number, MutableRates> }>;
  readonly seconds: { resolution: string; usd: number }[];
  fast: number | null;
  us: number | null;
  readonly unused: string[];
}

/**
 * Finds a model's price in the list.
 * @param name name of an entry
 * @returns null if the list has no entry of that name
 */
export function listedPrice(list: JsonObject, name: string): ListedPrice | null {
  const entry = Object.hasOwn(list, name) ? list[name] : null;
  if (!isObject(entry)) return null;
  const draft: Draft = {
    rates: {},
    steps: new Map(),
    tiers: new Map(),
    seconds: [],
    fast: null,
    us: null,
    unused: [],
  };
  for (const [member, value] of Object.entries(entry)) readMember(draft, member, value);
  const isByToken = [...tokenMembers.values()].some((rate) => (draft.rates[rate] ?? 0) > 0);
  const perImage = perImageOf(entry);
  // An entry with token prices may also have image prices, for users who prefer an estimate.
  const images = isByToken ? [] : sizedImages(list, name);
  const perCall = isByToken ? null : perImage;
  if (perCall !== null) draft.rates.perCall = perCall.usd;
  for (const member of imageMembers)
    if (member !== perCall?.member && (numberOrNull(entry[member]) ?? 0) > 0) draft.unused.push(member);
  readCharacters(draft, entry, isByToken);
  leaveOutRepeated(draft);
  return { price: priceOf(draft, images), unused: draft.unused };
}

function readMember(draft: Draft, member: string, value: unknown): void {
  const usd = numberOrNull(value);
  const resolution = resolutionMember.exec(member)?.[1];
  if (usd !== null && usd >= 0 && readRate(draft, member, usd)) return;
  if (usd !== null && usd >= 0 && resolution !== undefined) draft.seconds.push({ resolution, usd });
  else if (member === 'search_context_cost_per_query' && isObject(value)) readSearches(draft, value);
  else if (member === 'tiered_pricing' && Array.isArray(value)) readLengths(draft, value);
  else if (member === 'provider_specific_entry' && isObject(value)) readFactors(draft, value);
  else if (aboutMoney.test(member) && value !== 0 && value !== null && !laterMembers.includes(member))
    draft.unused.push(member);
}

/** @returns whether the member is the price of a counted unit */
function readRate(draft: Draft, member: string, usd: number): boolean {
  if (secondMembers.includes(member)) {
    draft.rates.perSecond = Math.max(draft.rates.perSecond ?? 0, usd);
    return true;
  }
  if (member === 'input_cost_per_query') {
    draft.rates.perCall = usd;
    return true;
  }
  const tierWord = tierSuffix.exec(member)?.[1];
  const withoutTier = member.replace(tierSuffix, '');
  const above = lengthSuffix.exec(withoutTier)?.[1];
  const rate = tokenMembers.get(withoutTier.replace(lengthSuffix, ''));
  if (rate === undefined) return false;
  const { rates, steps } = tierWord === undefined ? draft : tierOf(draft, tierWord);
  const holder = above === undefined ? rates : stepOf(steps, Number(above) * 1000);
  holder[rate] = perMillion(usd);
  return true;
}

function tierOf({ tiers }: Draft, word: string): Pick<Draft, 'rates' | 'steps'> {
  const name = word === 'batches' ? 'batch' : (word as TierName);
  const known = tiers.get(name) ?? { rates: {}, steps: new Map<number, MutableRates>() };
  tiers.set(name, known);
  return known;
}

function stepOf(steps: Map<number, MutableRates>, above: number): MutableRates {
  const known = steps.get(above) ?? {};
  steps.set(above, known);
  return known;
}

/**
 * Reads the price of a search, which may depend on how much is read. The medium price applies, because no answer
 * reports the size.
 */
function readSearches(draft: Draft, costs: JsonObject): void {
  const [low, medium, high] = ['low', 'medium', 'high'].map((size) =>
    numberOrNull(costs[`search_context_size_${size}`]),
  );
  const usd = medium ?? low ?? high ?? null;
  if (usd !== null && usd >= 0) draft.rates.perSearch = usd;
  if ([low, high].some((other) => other != null && other !== usd))
    draft.unused.push('search_context_cost_per_query (other sizes than medium)');
}

/** Reads prices by input length that form a list, starting with the shortest. */
function readLengths(draft: Draft, lengths: readonly unknown[]): void {
  for (const length of lengths) {
    if (!isObject(length)) continue;
    const from = numberOrNull(listOf(length.range)[0]) ?? 0;
    const rates = from > 0 ? stepOf(draft.steps, Math.floor(from)) : draft.rates;
    for (const [member, value] of Object.entries(length)) {
      const rate = tokenMembers.get(member);
      const usd = numberOrNull(value);
      if (rate !== undefined && usd !== null && usd >= 0) rates[rate] = perMillion(usd);
      else if (aboutMoney.test(member)) draft.unused.push(`tiered_pricing.${member}`);
    }
  }
}

function readFactors(draft: Draft, factors: JsonObject): void {
  for (const [name, value] of Object.entries(factors)) {
    const factor = numberOrNull(value);
    if (name === 'fast' && factor !== null && factor >= 0) draft.fast = factor;
    else if (name === 'us' && factor !== null && factor >= 0) draft.us = factor;
    else draft.unused.push(`provider_specific_entry.${name}`);
  }
}

const imageModes = ['image_generation', 'image_edit'];
const imageMembers = ['output_cost_per_image', 'input_cost_per_image'];
/** If both are present, they state one price: that of the text that is spoken. */
const characterMembers = ['input_cost_per_character', 'output_cost_per_character'];
/** Members that are read once all others were. */
const laterMembers = [...imageMembers, ...characterMembers];

/** Reads the price of a character. A vendor that counts tokens charges those, and its characters are an estimate. */
function readCharacters(draft: Draft, entry: JsonObject, isByToken: boolean): void {
  const told = characterMembers.filter((member) => (numberOrNull(entry[member]) ?? 0) > 0);
  // Only speech counts characters: any other call would be free.
  if (isByToken || textOf(entry.mode) !== 'audio_speech') draft.unused.push(...told);
  else if (told.length > 0)
    draft.rates.characters = Math.max(...told.map((member) => perMillion(numberOrNull(entry[member]) ?? 0)));
}

/**
 * Finds the price of an image. Entries of image models may have it as an input price. In other entries, an input price
 * is that of reading an image.
 */
function perImageOf(entry: JsonObject): { readonly member: string; readonly usd: number } | null {
  const isOfImages = imageModes.includes(textOf(entry.mode));
  for (const member of imageMembers) {
    const usd = numberOrNull(entry[member]);
    if (usd !== null && usd > 0 && (isOfImages || member === 'output_cost_per_image')) return { member, usd };
  }
  return null;
}

const sizedName = /^(?:([a-z]+)\/)?(\d{2,5})-x-(\d{2,5})\/(.+)$/;
/** Decimals of a price. Prices per pixel are an image's price, divided by its pixels and rounded. */
const decimals = 9;

/**
 * Reads entries such as `high/1024-x-1024/gpt-image-1`: image prices by quality and size. The first entry of a price
 * that matches applies, so entries for any quality come last.
 */
function sizedImages(list: JsonObject, model: string): NonNullable<PriceSettings['images']> {
  const images = Object.entries(list).flatMap(([name, entry]) => {
    const [, quality, width = '', height = '', of] = sizedName.exec(name) ?? [];
    if (of !== model || !isObject(entry)) return [];
    const pixels = Number(width) * Number(height);
    const byPixel = Math.max(
      numberOrNull(entry.input_cost_per_pixel) ?? 0,
      numberOrNull(entry.output_cost_per_pixel) ?? 0,
    );
    const usd = perImageOf({ ...entry, mode: imageModes[0] })?.usd ?? byPixel * pixels;
    if (!(usd > 0)) return [];
    const price = { size: `${width}x${height}`, usd: Number(usd.toFixed(decimals)) };
    return [quality === undefined ? price : { ...price, quality }];
  });
  return images.sort((one, other) => Number(!('quality' in one)) - Number(!('quality' in other)));
}

function priceOf(
  { rates, steps, tiers, seconds, fast, us }: Draft,
  images: NonNullable<PriceSettings['images']>,
): PriceSettings {
  const all = stepsOf(steps);
  const ofTiers: NonNullable<PriceSettings['tiers']> = Object.fromEntries(
    // A tier without prices for long inputs has those of all calls.
    [...tiers].map(([name, own]) => [
      name,
      { ...own.rates, ...(own.steps.size > 0 ? stepsOf(own.steps) : all) },
    ]),
  );
  if (fast !== null) ofTiers.fast = fastTier({ rates, steps, images, seconds }, fast);
  return {
    ...rates,
    ...(images.length === 0 ? {} : { images }),
    ...(seconds.length === 0 ? {} : { seconds }),
    ...all,
    ...(Object.keys(ofTiers).length === 0 ? {} : { tiers: ofTiers }),
    ...(us === null ? {} : { geos: { us } }),
  };
}

/** Tokens alone have the list's factor, and a factor here is one on all prices. */
function fastTier(
  {
    rates,
    steps,
    images,
    seconds,
  }: Pick<Draft, 'rates' | 'steps' | 'seconds'> & { readonly images: readonly unknown[] },
  factor: number,
): NonNullable<PriceSettings['tiers']>['fast'] {
  const isOfTokens = Object.keys(rates).every((name) => tokenRates.has(name as RateName));
  if (isOfTokens && images.length + seconds.length === 0) return factor;
  const fastSteps = new Map([...steps].map(([above, ofStep]) => [above, multiplied(ofStep, factor)]));
  return { ...multiplied(rates, factor), ...stepsOf(fastSteps) };
}

function multiplied(rates: MutableRates, factor: number): MutableRates {
  const products: MutableRates = {};
  for (const name of tokenRates) {
    const usd = rates[name];
    // Rounded, since a product of decimals is often off by the last bit.
    if (usd !== undefined) products[name] = Number((usd * factor).toFixed(decimals));
  }
  return products;
}

/** The list may repeat a price for a part, and change only that of the whole for long inputs and tiers. */
function leaveOutRepeated({ rates, steps, tiers }: Draft): void {
  const all = [rates, ...steps.values()];
  for (const tier of tiers.values()) all.push(tier.rates, ...tier.steps.values());
  for (const [part, whole] of wholes) {
    if (all.some((each) => each[part] !== undefined && each[part] !== each[whole])) continue;
    for (const each of all) delete each[part];
  }
}

function stepsOf(steps: ReadonlyMap<number, MutableRates>): Pick<PriceSettings, 'steps'> {
  if (steps.size === 0) return {};
  const ascending = [...steps].sort(([one], [other]) => one - other);
  return { steps: ascending.map(([aboveInput, rates]) => ({ aboveInput, ...rates })) };
}

/** Converts a price of one unit to one of a million, exactly: only the exponent changes. */
function perMillion(usd: number): number {
  const [mantissa = '0', exponent = '0'] = `${usd}`.split('e');
  return Number(`${mantissa}e${Number(exponent) + 6}`);
}

/** Prices for the models of a config. */
interface ImportedPrices {
  /** By model name. */
  readonly prices: Readonly<Record<string, PriceSettings>>;
  /** What was kept or left out, one sentence each without a full stop. */
  readonly notes: readonly string[];
}

/** Parsing limit. The list is larger than any answer of an upstream. */
const listCost = 50_000_000;

/**
 * Finds prices for the models of a config file in a public list. Reads only the file's models and upstreams, and
 * resolves no reference to the environment.
 * @param config text of the file
 * @param list text of the list
 * @param replaces whether to include models that have a price
 * @throws ConfigError if the config is not JSON, Error if the list is not
 */
export function importPrices(config: string, list: string, replaces: boolean): ImportedPrices {
  const { value, problems } = parseJson(config);
  if (value === undefined) throw new ConfigError(problems);
  const entries = parseJsonText(list, listCost);
  if (!isObject(entries)) throw new Error('the list of prices is not a JSON object');
  const upstreams = propertyOf(value, 'upstreams');
  const prices: [string, PriceSettings][] = [];
  const notes: string[] = [];
  const missing: string[] = [];
  for (const [name, model] of propertiesOf(propertyOf(value, 'models'))) {
    if (propertyOf(model, 'price') !== undefined && !replaces) {
      notes.push(`models.${name} has a price and keeps it (--replace takes the list's)`);
      continue;
    }
    const names = namesOf(name, model, upstreams);
    const found = findPrice(entries, names);
    // An empty price would mean that the model costs nothing.
    const isPriced = found !== null && Object.keys(found.price).length > 0;
    if (isPriced) prices.push([name, found.price]);
    else missing.push(name);
    if (isPriced && isOfOther(found.provider, names)) {
      const hosts = [...new Set(names.flatMap(({ host }) => (host === '' ? [] : [host])))].join(', ');
      notes.push(
        `models.${name} has the price of ${found.provider}, which is not known as the provider at ${hosts}: see that it is the right one`,
      );
    }
    if (found === null || found.unused.length === 0) continue;
    const told = isPriced ? 'is priced' : 'would be priced';
    notes.push(
      `models.${name} ${told} without ${found.unused.join(', ')}: a price here cannot say what the list says there`,
    );
  }
  if (missing.length > 0) notes.push(`the list has no price for ${missing.join(', ')}`);
  // Not by assignment: a model's name may be `__proto__`.
  return { prices: Object.fromEntries(prices), notes };
}

/**
 * Writes prices into the text of a config file. The rest of the text stays unchanged, including its comments.
 * @returns the changed text
 */
export function writePrices(config: string, prices: ImportedPrices['prices']): string {
  let text = config;
  for (const [name, price] of Object.entries(prices)) {
    const formattingOptions = { insertSpaces: true, tabSize: 2 };
    text = applyEdits(text, modify(text, ['models', name, 'price'], price, { formattingOptions }));
  }
  return text;
}

interface FoundPrice extends ListedPrice {
  /** The provider that the entry names. Empty if it names none. */
  readonly provider: string;
}

function findPrice(list: JsonObject, names: readonly ModelName[]): FoundPrice | null {
  for (const { name, host } of names) {
    for (const entry of [...providersOf(host).map((provider) => `${provider}/${name}`), name]) {
      const price = listedPrice(list, entry);
      if (price !== null) return { ...price, provider: textOf(objectOf(list[entry]).litellm_provider) };
    }
  }
  return null;
}

/** Name of a model at one of its targets. */
interface ModelName {
  readonly name: string;
  /** Host of the target's upstream. Empty if it has none. */
  readonly host: string;
}

/** Lists a model's names at its targets, in order, and then the name that clients use. */
function namesOf(model: string, settings: unknown, upstreams: unknown): readonly ModelName[] {
  const targets = propertyOf(settings, 'targets');
  const ofTargets = (Array.isArray(targets) ? targets : []).map((target: unknown): ModelName => {
    const upstream = propertyOf(upstreams, textOf(propertyOf(target, 'upstream')));
    const name = textOrNull(propertyOf(target, 'model')) ?? model;
    return { name, host: hostOf(textOf(propertyOf(upstream, 'baseUrl'))) };
  });
  return [...ofTargets, { name: model, host: '' }];
}

function hostOf(baseUrl: string): string {
  try {
    return new URL(baseUrl).hostname;
  } catch {
    return '';
  }
}

/** Providers whose hosts have other names. */
const providersByHost: readonly (readonly [host: RegExp, provider: string])[] = [
  [/(^|\.)generativelanguage\.googleapis\.com$/, 'gemini'],
  [/(^|[.-])aiplatform(\.[a-z\d-]+\.rep)?\.googleapis\.com$/, 'vertex_ai'],
  [/(^|\.)amazonaws\.com$/, 'bedrock'],
  [/(^|\.)voyageai\.com$/, 'voyage'],
  [/(^|\.)volces\.com$/, 'volcengine'],
];

/**
 * Lists the list's possible names for the provider at a host: `deepseek` for `api.deepseek.com`, `together_ai` for
 * `api.together.xyz`, `xai` for `api.x.ai`. Names nearer to the end of the host come first, since they say whose host it
 * is: `NAME.openai.azure.com` is one of Azure.
 */
function providersOf(host: string): readonly string[] {
  if (host === '') return [];
  const labels = host.split('.').reverse();
  return [
    ...providersByHost.flatMap(([ofHost, provider]) => (ofHost.test(host) ? [provider] : [])),
    ...labels,
    ...labels.map((label) => `${label}_ai`),
    `${labels[1] ?? ''}${labels[0] ?? ''}`,
  ];
}

/** Whether an entry is of a provider that is at none of the hosts. The list has several names of some: `cohere_chat`. */
function isOfOther(provider: string, names: readonly ModelName[]): boolean {
  if (provider === '' || names.every(({ host }) => host === '')) return false;
  return !names.some(({ host }) =>
    providersOf(host).some(
      (known) =>
        known === provider ||
        provider.startsWith(`${known}_`) ||
        provider.startsWith(`${known}-`) ||
        provider.endsWith(`-${known}`),
    ),
  );
}
