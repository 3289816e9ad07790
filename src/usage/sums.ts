import { createHash } from 'node:crypto';
import type { CallRecord } from '../metrics/call-record.js';
import { dayOf, dayStart } from './budget.js';
import type { TokenSource } from './ledger-record.js';

/** The ledger of usage in the store. Its name is in every store that is in use. */
export const usageLedger = 'usage';

/** What the calls themselves say in numbers. */
export const amountNames = [
  'inputTokens',
  'outputTokens',
  'cachedTokens',
  'cacheWrittenTokens',
  'reasoningTokens',
  'bytesIn',
  'bytesOut',
  /** Milliseconds of audio or video. */
  'mediaMs',
  'costNanoUsd',
] as const;

/** What is summed of calls; their names are in the store. */
export const totalNames = [
  'calls',
  /** Of these: how many ended in each way that is not complete. */
  'incomplete',
  'refused',
  'clientGone',
  'upstreamErrors',
  /** Calls whose tokens the upstream did not report whole. */
  'inexact',
  ...amountNames,
] as const;
export type TotalName = (typeof totalNames)[number];

/** Sums of many calls: whole numbers, which stop at `Number.MAX_SAFE_INTEGER`. */
export type UsageTotals = Record<TotalName, number>;

/** What calls of one group have in common: a page of the ledger holds it once for all of them. */
export type CallGroup = Pick<
  CallRecord,
  'keyId' | 'groups' | 'protocol' | 'model' | 'target' | 'status' | 'outcome'
> & { readonly tokensKnown: TokenSource };

/**
 * The sums of the numbers of one group's calls, at most `Number.MAX_SAFE_INTEGER`. Numbers that are out of range add
 * nothing.
 */
export interface CallGroupSums extends Readonly<Pick<UsageTotals, 'calls' | (typeof amountNames)[number]>> {
  readonly group: CallGroup;
}

/** What a sum in the store is of: one day (UTC) of one key and one model. */
export interface SumLabels {
  /** `2026-03-09` */
  readonly day: string;
  readonly keyId: string | null;
  readonly model: string | null;
}

/** A day, a key and a model fit into the id of a sum, which takes 500 bytes. */
const longestPart = 200;
const hashDigits = 32;

/**
 * The id of a sum. Ids sort by the day first. Of a name that is too long for it, the end is replaced by a hash.
 */
export function sumId({ day, keyId, model }: SumLabels): string {
  return `${day}/${part(keyId)}/${part(model)}`;
}

/** Reads an id that `sumId` has made; null for any other text. */
export function readSumId(id: string): SumLabels | null {
  const [day, keyId, model, ...more] = id.split('/');
  if (day === undefined || keyId === undefined || model === undefined || more.length > 0) return null;
  try {
    return { day, keyId: readPart(keyId), model: readPart(model) };
  } catch {
    return null;
  }
}

/** What stands for a key or a model in the sums: itself, unless it is too long. */
export function labelOf(name: string | null): string | null {
  return readPart(part(name));
}

/** Null is empty, and a name begins with a letter that says so. */
function part(name: string | null): string {
  if (name === null) return '';
  const text = encodeURIComponent(wellFormed(name));
  if (text.length <= longestPart) return `n${text}`;
  const hash = createHash('sha256').update(wellFormed(name)).digest('hex').slice(0, hashDigits);
  return `n${encodedStart(name, longestPart - hashDigits)}~${hash}`;
}

/** As much of a name as fits. */
function encodedStart(name: string, longest: number): string {
  let text = '';
  for (const character of wellFormed(name)) {
    const more = encodeURIComponent(character);
    if (text.length + more.length > longest) break;
    text += more;
  }
  return text;
}

/** Halves of characters cannot be encoded. */
function wellFormed(name: string): string {
  return Buffer.from(name).toString();
}

function readPart(text: string): string | null {
  return text === '' ? null : decodeURIComponent(text.slice(1));
}

export function noTotals(): UsageTotals {
  return {
    calls: 0,
    incomplete: 0,
    refused: 0,
    clientGone: 0,
    upstreamErrors: 0,
    inexact: 0,
    inputTokens: 0,
    outputTokens: 0,
    cachedTokens: 0,
    cacheWrittenTokens: 0,
    reasoningTokens: 0,
    bytesIn: 0,
    bytesOut: 0,
    mediaMs: 0,
    costNanoUsd: 0,
  };
}

/** Adds one to the other. */
export function addTotals(totals: UsageTotals, more: Readonly<Record<string, number>>): void {
  for (const name of totalNames) addOne(totals, name, more[name] ?? 0);
}

function addOne(totals: UsageTotals, name: TotalName, more: number): void {
  totals[name] = Math.min(totals[name] + more, Number.MAX_SAFE_INTEGER);
}

/** What pages of calls add to the sums of the store, by the ids of these. */
export class SumCollector {
  readonly #sums = new Map<string, UsageTotals>();
  /** Those of the day, by key and model. */
  readonly #ofDay = new Map<string | null, Map<string | null, UsageTotals>>();
  #dayStart = Number.NaN;
  #day = '';

  /**
   * What calls of one key and model are added to.
   * @param at Unix milliseconds, in the day of the calls
   * @throws RangeError when the time is none that a calendar has
   */
  totalsOf(at: number, keyId: string | null, model: string | null): UsageTotals {
    const start = dayStart(at);
    if (start !== this.#dayStart) {
      this.#ofDay.clear();
      this.#day = dayOf(at);
      this.#dayStart = start;
    }
    let ofKey = this.#ofDay.get(keyId);
    if (ofKey === undefined) {
      ofKey = new Map();
      this.#ofDay.set(keyId, ofKey);
    }
    const known = ofKey.get(model);
    if (known !== undefined) return known;
    const id = sumId({ day: this.#day, keyId, model });
    const totals = this.#sums.get(id) ?? noTotals();
    this.#sums.set(id, totals);
    ofKey.set(model, totals);
    return totals;
  }

  /** Only what is not zero. */
  sums(): { readonly id: string; readonly add: Readonly<Record<string, number>> }[] {
    return [...this.#sums].map(([id, totals]) => {
      const add: Partial<UsageTotals> = {};
      for (const name of totalNames) if (totals[name] !== 0) add[name] = totals[name];
      return { id, add };
    });
  }
}

/** Adds calls that of one group. */
export function addGroup(totals: UsageTotals, sums: CallGroupSums): void {
  const { outcome, tokensKnown } = sums.group;
  const { calls } = sums;
  addOne(totals, 'calls', calls);
  if (outcome === 'incomplete') addOne(totals, 'incomplete', calls);
  if (outcome === 'refused') addOne(totals, 'refused', calls);
  if (outcome === 'client_gone') addOne(totals, 'clientGone', calls);
  if (outcome === 'upstream_error') addOne(totals, 'upstreamErrors', calls);
  if (tokensKnown === 'partial' || tokensKnown === 'estimated') addOne(totals, 'inexact', calls);
  for (const name of amountNames) addOne(totals, name, Math.round(sums[name]));
}
