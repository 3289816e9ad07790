import { createHash } from 'node:crypto';
import type { CallOutcome, CallRecord } from '../metrics/call-record.js';
import type { LedgerSums } from '../store/store.js';
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
  'audioInputTokens',
  'audioOutputTokens',
  'imageInputTokens',
  'imageOutputTokens',
  'cachedAudioTokens',
  'cachedImageTokens',
  'cacheWrittenHourTokens',
  'searches',
  'bytesIn',
  'bytesOut',
  /** Milliseconds of audio or video. */
  'mediaMs',
  /** Images, videos, and calls for anything else, as far as they were served. */
  'units',
  'costNanoUsd',
  /** Of calls of which it is known. */
  'paidNanoUsd',
] as const;

/** What is summed of calls; their names are in the store. */
export const totalNames = [
  'calls',
  /** Of these: how many ended in each way that is not complete. */
  'incomplete',
  'refused',
  'clientGone',
  'upstreamErrors',
  'interrupted',
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
/** A name that stands for itself, as most do. */
const plainName = /^[\w.-]*$/;

/**
 * The id of a sum. Ids sort by the day first, and those of a day by the key. Of a name that is too long for it, the end is replaced by a hash.
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

/**
 * The ids of the sums of one key on one day: from the first bound on, and before the second. In an id a slash follows the
 * key, and a zero is the character behind that.
 */
export function sumRange(
  day: string,
  keyId: string | null,
): { readonly from: string; readonly until: string } {
  const start = `${day}/${part(keyId)}`;
  return { from: `${start}/`, until: `${start}0` };
}

/** What stands for a key or a model in the sums: itself, unless it is too long. */
export function labelOf(name: string | null): string | null {
  return readPart(part(name));
}

/** Null is empty, and a name begins with a letter that says so. */
function part(name: string | null): string {
  if (name === null) return '';
  if (name.length <= longestPart && plainName.test(name)) return `n${name}`;
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
  return Object.fromEntries(totalNames.map((name) => [name, 0])) as UsageTotals;
}

/** Adds one to the other. */
export function addTotals(totals: UsageTotals, more: Readonly<Record<string, number>>): void {
  for (const name of totalNames) addOne(totals, name, more[name] ?? 0);
}

function addOne(totals: UsageTotals, name: TotalName, more: number): void {
  totals[name] = Math.min(totals[name] + more, Number.MAX_SAFE_INTEGER);
}

/** What pages of calls add to the sums of the store. */
export class SumCollector {
  readonly #ids: string[] = [];
  /** Rows of the sums, by their ids. */
  readonly #rows = new Map<string, number>();
  /** One row after the other, in the order of `totalNames`. */
  #values = new Float64Array(firstRows * rowLength);
  #dayStart = Number.NaN;
  #day = '';

  /**
   * Adds calls of one group.
   * @param at Unix milliseconds, in the day of the calls
   * @throws RangeError when the time is none that a calendar has
   */
  add(at: number, sums: CallGroupSums): void {
    const { keyId, model, outcome, tokensKnown } = sums.group;
    const { calls } = sums;
    // No client pays for it, or has asked for it: the vendor alone is paid.
    if (outcome === 'attempt' && sums.paidNanoUsd === 0) return;
    const start = this.#rowOf(at, keyId, model) * rowLength;
    if (outcome === 'attempt') {
      this.#addTo(start, 'paidNanoUsd', sums.paidNanoUsd);
      return;
    }
    if (outcome !== 'correction') this.#addTo(start, 'calls', calls);
    const ending = totalOfOutcome[outcome];
    if (ending !== null) this.#addTo(start, ending, calls);
    if (tokensKnown === 'partial' || tokensKnown === 'estimated') this.#addTo(start, 'inexact', calls);
    for (const name of amountNames) this.#addTo(start, name, Math.round(sums[name]));
  }

  /** How many sums there are. */
  get size(): number {
    return this.#ids.length;
  }

  /** All of it; without the columns in which there are only zeros. */
  sums(): Omit<LedgerSums, 'ttlMs'> {
    const count = this.#ids.length;
    const columns = totalNames.map((_, column) => column).filter((column) => this.#isUsed(column));
    const values = new Float64Array(count * columns.length);
    let at = 0;
    for (let row = 0; row < count; row++) {
      for (const column of columns) values[at++] = this.#values[row * rowLength + column] as number;
    }
    return { ids: this.#ids, names: columns.map((column) => totalNames[column] as TotalName), values };
  }

  #rowOf(at: number, keyId: string | null, model: string | null): number {
    const start = dayStart(at);
    if (start !== this.#dayStart) {
      this.#day = dayOf(at);
      this.#dayStart = start;
    }
    const id = sumId({ day: this.#day, keyId, model });
    const known = this.#rows.get(id);
    if (known !== undefined) return known;
    const row = this.#ids.push(id) - 1;
    this.#rows.set(id, row);
    if (this.#values.length < (row + 1) * rowLength) this.#grow();
    return row;
  }

  #grow(): void {
    const grown = new Float64Array(this.#values.length * 2);
    grown.set(this.#values);
    this.#values = grown;
  }

  #addTo(start: number, name: TotalName, more: number): void {
    const at = start + columnOf[name];
    this.#values[at] = Math.min((this.#values[at] as number) + more, Number.MAX_SAFE_INTEGER);
  }

  #isUsed(column: number): boolean {
    const behind = this.#ids.length * rowLength;
    for (let at = column; at < behind; at += rowLength) if (this.#values[at] !== 0) return true;
    return false;
  }
}

const firstRows = 16;
const rowLength = totalNames.length;
const columnOf = Object.fromEntries(totalNames.map((name, column) => [name, column])) as Record<
  TotalName,
  number
>;

/** What is counted of calls that ended in a way, beside that they were calls. */
const totalOfOutcome: Readonly<Record<CallOutcome, TotalName | null>> = {
  complete: null,
  incomplete: 'incomplete',
  refused: 'refused',
  client_gone: 'clientGone',
  upstream_error: 'upstreamErrors',
  interrupted: 'interrupted',
  attempt: null,
  correction: null,
};
