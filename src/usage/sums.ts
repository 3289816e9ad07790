import { createHash } from 'node:crypto';
import type { CallOutcome } from '../metrics/call-record.js';
import type { LedgerSums } from '../store/store.js';
import { dayOf, dayStart } from './budget.js';
import { type CallGroup, callsSum, column } from './call-table.js';

/** The ledger of usage in the store. Existing stores contain this name. */
export const usageLedger = 'usage';

/** The numbers of the call records. */
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
  'videoInputTokens',
  'searches',
  'bytesIn',
  'bytesOut',
  /** Milliseconds of audio or video. */
  'mediaMs',
  /** Of texts that were spoken. */
  'characters',
  /** Images and videos served; for any other operation, calls served. */
  'units',
  'costNanoUsd',
  /** Sum of those calls for which it is known. */
  'paidNanoUsd',
] as const;

/** The same, each with its column in the sums of a group. */
export const amounts = amountNames.map(
  (name) => [name, column[name === 'mediaMs' ? 'mediaSeconds' : name]] as const,
);

/** The numbers that are summed; their names are in the store. */
export const totalNames = [
  'calls',
  /** The calls among these that ended in each way other than complete. */
  'incomplete',
  'refused',
  'clientGone',
  'upstreamErrors',
  'interrupted',
  /** Calls whose tokens the upstream did not fully report. */
  'inexact',
  ...amountNames,
] as const;
export type TotalName = (typeof totalNames)[number];

/** Sums of many calls: whole numbers, capped at `Number.MAX_SAFE_INTEGER`. */
export type UsageTotals = Record<TotalName, number>;

/** The labels of a sum in the store: one day (UTC) of one key and one model. */
export interface SumLabels {
  /** `2026-03-09` */
  readonly day: string;
  readonly keyId: string | null;
  readonly model: string | null;
}

/** Longest key or model in an id, so that a sum's id stays within 500 bytes. */
const longestPart = 200;
const hashDigits = 32;
/** Names that need no encoding, as most do. */
const plainName = /^[\w.-]*$/;

/**
 * The id of a sum. Ids sort by day, and within a day by key. The end of a name that is too long is replaced by a hash.
 */
export function sumId({ day, keyId, model }: SumLabels): string {
  return `${day}/${part(keyId)}/${part(model)}`;
}

/** Parses an id made by `sumId`; null for any other text. */
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
 * The range of ids of one key's sums on one day, without its upper bound. In an id a slash follows the key, and '0' is
 * the next character after the slash.
 */
export function sumRange(
  day: string,
  keyId: string | null,
): { readonly from: string; readonly until: string } {
  const start = `${day}/${part(keyId)}`;
  return { from: `${start}/`, until: `${start}0` };
}

/** The label of a key or model in the sums: its name, shortened if it is too long. */
export function labelOf(name: string | null): string | null {
  return readPart(part(name));
}

/** Encodes a name. Null is empty, and a first letter marks any other. */
function part(name: string | null): string {
  if (name === null) return '';
  if (name.length <= longestPart && plainName.test(name)) return `n${name}`;
  const text = encodeURIComponent(wellFormed(name));
  if (text.length <= longestPart) return `n${text}`;
  const hash = createHash('sha256').update(wellFormed(name)).digest('hex').slice(0, hashDigits);
  return `n${encodedStart(name, longestPart - hashDigits)}~${hash}`;
}

/** The start of an encoded name, cut to fit. */
function encodedStart(name: string, longest: number): string {
  let text = '';
  for (const character of wellFormed(name)) {
    const more = encodeURIComponent(character);
    if (text.length + more.length > longest) break;
    text += more;
  }
  return text;
}

/** Replaces lone surrogates, which cannot be encoded. */
function wellFormed(name: string): string {
  return Buffer.from(name).toString();
}

function readPart(text: string): string | null {
  return text === '' ? null : decodeURIComponent(text.slice(1));
}

export function noTotals(): UsageTotals {
  return Object.fromEntries(totalNames.map((name) => [name, 0])) as UsageTotals;
}

/** Adds `more` to `totals`. */
export function addTotals(totals: UsageTotals, more: Readonly<Record<string, number>>): void {
  for (const name of totalNames) addOne(totals, name, more[name] ?? 0);
}

function addOne(totals: UsageTotals, name: TotalName, more: number): void {
  totals[name] = Math.min(totals[name] + more, Number.MAX_SAFE_INTEGER);
}

/** Collects what pages of calls add to the sums of the store. */
export class SumCollector {
  #ids: string[] = [];
  /** Rows of the sums, by their ids. */
  readonly #rows = new Map<string, number>();
  /** The rows in sequence, each in the order of `totalNames`. */
  #values = new Float64Array(firstRows * rowLength);
  #dayStart = Number.NaN;
  #day = '';

  /**
   * Adds the calls of one group.
   * @param at Unix milliseconds within the day of the calls
   * @param sums see `CountGroup`, like `from`
   * @throws RangeError when the time is invalid
   */
  add(at: number, group: CallGroup, sums: Float64Array, from: number): void {
    const { keyId, model, outcome, tokensKnown } = group;
    const calls = sums[from + callsSum] as number;
    const paid = sums[from + column.paidNanoUsd] as number;
    // An attempt given up is neither a call nor charged; only the vendor is paid for it.
    if (outcome === 'attempt' && paid === 0) return;
    const start = this.#rowOf(at, keyId, model) * rowLength;
    if (outcome === 'attempt') {
      this.#addTo(start, 'paidNanoUsd', paid);
      return;
    }
    if (outcome !== 'correction') this.#addTo(start, 'calls', calls);
    const ending = totalOfOutcome[outcome];
    if (ending !== null) this.#addTo(start, ending, calls);
    if (tokensKnown === 'partial' || tokensKnown === 'estimated') this.#addTo(start, 'inexact', calls);
    for (const [name, index] of amounts) this.#addTo(start, name, Math.round(sums[from + index] as number));
  }

  /** The number of sums. */
  get size(): number {
    return this.#ids.length;
  }

  /** Removes all sums, and returns them without the columns that hold only zeros. */
  take(): Omit<LedgerSums, 'ttlMs'> {
    const ids = this.#ids;
    const sums = this.#used();
    this.#ids = [];
    this.#rows.clear();
    this.#values.fill(0, 0, ids.length * rowLength);
    return { ids, ...sums };
  }

  #used(): Pick<LedgerSums, 'names' | 'values'> {
    const count = this.#ids.length;
    const columns = totalNames.map((_, column) => column).filter((column) => this.#isUsed(column));
    const values = new Float64Array(count * columns.length);
    let at = 0;
    for (let row = 0; row < count; row++) {
      for (const column of columns) values[at++] = this.#values[row * rowLength + column] as number;
    }
    return { names: columns.map((column) => totalNames[column] as TotalName), values };
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

/** The total that counts calls of an outcome, besides `calls`. */
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
