import { applyEdits, modify } from 'jsonc-parser';
import { isObject, type JsonObject, parseJson as parseJsonText, textOrNull } from '../wire/json.js';
import { parseJson } from './load.js';
import { type ListedPrice, listedPrice } from './price-list.js';
import type { PriceSettings } from './price-schema.js';
import { ConfigError, propertiesOf, propertyOf } from './problem.js';

/** Prices for the models of a config. */
interface ImportedPrices {
  /** By the names of the models. */
  readonly prices: Readonly<Record<string, PriceSettings>>;
  /** What was left as it is, or out, one sentence each without a full stop. */
  readonly notes: readonly string[];
}

/** The list is larger than any answer of an upstream. */
const listCost = 50_000_000;

/**
 * Finds prices for the models of a config file in a public list (see `price-list.ts`). Nothing of the file but its models
 * and upstreams is looked at, and no reference to the environment is followed.
 * @param config text of the file
 * @param list text of the list
 * @param replaces also for models that have a price
 * @throws ConfigError for a config or list that is no JSON
 */
export function importPrices(config: string, list: string, replaces: boolean): ImportedPrices {
  const { value, problems } = parseJson(config);
  if (value === undefined) throw new ConfigError(problems);
  const entries = parseJsonText(list, listCost);
  if (!isObject(entries))
    throw new ConfigError([{ path: '', message: 'the list of prices is not a JSON object' }]);
  const upstreams = propertyOf(value, 'upstreams');
  const prices: [string, PriceSettings][] = [];
  const notes: string[] = [];
  const missing: string[] = [];
  for (const [name, model] of propertiesOf(propertyOf(value, 'models'))) {
    if (propertyOf(model, 'price') !== undefined && !replaces) {
      notes.push(`models.${name} has a price and keeps it (--replace takes the list's)`);
      continue;
    }
    const found = findPrice(entries, namesOf(name, model, upstreams));
    // An empty price would say that the model is meant to cost nothing.
    const isPriced = found !== null && Object.keys(found.price).length > 0;
    if (isPriced) prices.push([name, found.price]);
    else missing.push(name);
    if (found === null || found.unused.length === 0) continue;
    const told = isPriced ? 'is priced' : 'would be priced';
    notes.push(
      `models.${name} ${told} without ${found.unused.join(', ')}: a price here cannot say what the list says there`,
    );
  }
  if (missing.length > 0) notes.push(`the list has no price for ${missing.join(', ')}`);
  // Not by assignment: a model may be called `__proto__`.
  return { prices: Object.fromEntries(prices), notes };
}

/**
 * Puts prices into the text of a config file, of which all else stays as it is, with its comments.
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

function findPrice(list: JsonObject, names: readonly ModelName[]): ListedPrice | null {
  for (const { name, host } of names) {
    const ofHost = Object.keys(list).find((key) => isOfHost(key, name, host));
    const price = (ofHost === undefined ? null : listedPrice(list, ofHost)) ?? listedPrice(list, name);
    if (price !== null) return price;
  }
  return null;
}

/** What a model is called at one of its targets. */
interface ModelName {
  readonly name: string;
  /** Of the target's upstream; empty where it has none. */
  readonly host: string;
}

/** By its targets, the first one first, and then as clients call it. */
function namesOf(model: string, settings: unknown, upstreams: unknown): readonly ModelName[] {
  const targets = propertyOf(settings, 'targets');
  const ofTargets = (Array.isArray(targets) ? targets : []).map((target: unknown): ModelName => {
    const upstream = propertyOf(upstreams, textOrNull(propertyOf(target, 'upstream')) ?? '');
    const name = textOrNull(propertyOf(target, 'model')) ?? model;
    return { name, host: hostOf(textOrNull(propertyOf(upstream, 'baseUrl')) ?? '') };
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

/** Whether an entry such as `deepseek/deepseek-chat` is of a model at the host `api.deepseek.com`. */
function isOfHost(key: string, name: string, host: string): boolean {
  if (!key.endsWith(`/${name}`)) return false;
  const provider = key.slice(0, -name.length - 1);
  return host.split('.').includes(provider);
}
