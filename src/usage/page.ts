import { type CallFacts, noFacts } from '../metrics/recorder.js';
import { requestIdOf } from '../request-id.js';
import { dayMs, dayStart } from './budget.js';
import { packColumns } from './columns.js';
import type { UsageNote } from './entry.js';
import { type SumCollector, sum, type UsageTotals } from './sums.js';

/** How long after the first call of a page its last one has ended, at most: less than that, in milliseconds. */
export const pageSpanMs = 1000;
/** Calls of one page. */
export const mostCalls = 500;
/** The form of pages. */
export const version = 2;
/** Numbers of each call that the ledger keeps, and all of them. */
export const columnCount = 15;
const rowLength = 16;
/** Stands for a time that there is not. */
export const none = -1;

/** What calls have in common again and again, so that a page says it once. */
export type Manner = Pick<
  UsageNote,
  'keyId' | 'groups' | 'protocol' | 'model' | 'target' | 'status' | 'outcome' | 'tokensKnown'
>;

interface NumberedManner {
  /** Its place in the page. */
  readonly index: number;
  readonly manner: Manner;
}

/** Room for the numbers of one page, for one page after the other. */
export function createRows(): Float64Array {
  return new Float64Array(mostCalls * rowLength);
}

/**
 * Some calls of one day as one text: a page of the ledger. What is done for each of them is a part of every request, and
 * so there is little of it: names that are known are compared, and numbers are put in a row, where they wait for the
 * others. All else is done for many of them at once, when the page ends.
 */
export class UsagePage {
  /** Unix milliseconds: when its first call ended. */
  readonly at: number;
  readonly #endsAt: number;
  readonly #manners: Manner[] = [];
  /** Those of each key. */
  readonly #byKey = new Map<string | null, NumberedManner[]>();
  /** What the ids of its calls begin with, but for those in `ids`. */
  #series: string | null = null;
  readonly #ids: string[] = [];
  readonly #rows: Float64Array;
  #count = 0;
  /** How many of these `count` has told. */
  #counted = 0;
  #last: NumberedManner | null = null;

  /**
   * @param at when the first call ended, a time by `isTime`
   * @param rows made by `createRows`; of no other page until this one has ended
   */
  constructor(at: number, rows: Float64Array) {
    this.at = at;
    this.#endsAt = Math.min(at + pageSpanMs, dayStart(at) + dayMs);
    this.#rows = rows;
  }

  /** Whether a call that ended at a time may be added. */
  hasRoom(at: number): boolean {
    return at >= this.at && at < this.#endsAt && this.#count < mostCalls;
  }

  /** Adds a call for which there is room. Nothing of the note is kept. */
  add(note: UsageNote): void {
    const rows = this.#rows;
    const start = this.#count++ * rowLength;
    // In the order in which `readPage`, `addRow` and `factsOfRow` take them.
    rows[start] = this.#indexOf(note);
    rows[start + 1] = note.at - this.at;
    rows[start + 2] = this.#idOf(note);
    rows[start + 3] = note.inputTokens;
    rows[start + 4] = note.outputTokens;
    rows[start + 5] = note.cachedTokens;
    rows[start + 6] = note.cacheWrittenTokens;
    rows[start + 7] = note.reasoningTokens;
    rows[start + 8] = note.bytesIn;
    rows[start + 9] = note.bytesOut;
    rows[start + 10] = note.mediaSeconds;
    rows[start + 11] = Math.round(note.durationMs * 1000);
    rows[start + 12] = note.firstByteMs < 0 ? none : Math.round(note.firstByteMs * 1000);
    rows[start + 13] = note.retries;
    rows[start + 14] = note.costNanoUsd;
    rows[start + 15] = note.ownMs;
  }

  /** Tells of the calls that were added since the last time, as they are counted in the metrics. */
  count(record: (facts: CallFacts) => void): void {
    for (; this.#counted < this.#count; this.#counted++) {
      const start = this.#counted * rowLength;
      record(factsOfRow(this.#manners[this.#rows[start] as number] as Manner, this.#rows, start));
    }
  }

  /** Ends the page: adds its calls to the sums. @returns the page as the ledger keeps it */
  end(sums: SumCollector): string {
    this.#addTo(sums);
    const columns = packColumns(this.#rows, rowLength, columnCount, this.#count).toString('base64');
    const [manners, series, ids] = [this.#manners, this.#series, this.#ids].map((part) =>
      JSON.stringify(part),
    );
    const outline = `"v":${version},"at":${this.at},"manners":${manners},"series":${series},"ids":${ids}`;
    return `{${outline},"calls":${this.#count},"columns":"${columns}"}`;
  }

  #addTo(sums: SumCollector): void {
    const totals = this.#manners.map(({ keyId, model }) => sums.totalsOf(this.at, keyId, model));
    for (let call = 0; call < this.#count; call++) {
      const start = call * rowLength;
      const index = this.#rows[start] as number;
      addRow(totals[index] as UsageTotals, this.#manners[index] as Manner, this.#rows, start);
    }
  }

  /** @returns the number of an id of the series; what stands for another one is below zero */
  #idOf({ requestSeries, requestNumber }: UsageNote): number {
    if (requestNumber >= 0) {
      this.#series ??= requestSeries;
      if (requestSeries === this.#series) return requestNumber;
    }
    this.#ids.push(requestNumber < 0 ? requestSeries : requestIdOf(requestSeries, requestNumber));
    return -this.#ids.length;
  }

  #indexOf(note: UsageNote): number {
    if (this.#last === null || !isOf(this.#last.manner, note)) this.#last = this.#find(note);
    return this.#last.index;
  }

  #find(note: UsageNote): NumberedManner {
    let ofKey = this.#byKey.get(note.keyId);
    if (ofKey === undefined) {
      ofKey = [];
      this.#byKey.set(note.keyId, ofKey);
    }
    for (const known of ofKey) {
      if (isOf(known.manner, note)) return known;
    }
    const { keyId, groups, protocol, model, target, status, outcome, tokensKnown } = note;
    const manner = { keyId, groups, protocol, model, target, status, outcome, tokensKnown };
    const added = { index: this.#manners.length, manner };
    this.#manners.push(manner);
    ofKey.push(added);
    return added;
  }
}

/** Groups are those of a key in the config: the same array as long as the key is the same. */
function isOf(manner: Manner, note: UsageNote): boolean {
  return (
    manner.keyId === note.keyId &&
    manner.model === note.model &&
    manner.target === note.target &&
    manner.status === note.status &&
    manner.outcome === note.outcome &&
    manner.tokensKnown === note.tokensKnown &&
    manner.protocol === note.protocol &&
    manner.groups === note.groups
  );
}

const tokens = { input: 0, output: 0, cached: 0, reasoning: 0 };
/** Filled anew for every call: whoever counts it keeps nothing of it. */
const facts = noFacts();

function factsOfRow(manner: Manner, rows: Float64Array, start: number): CallFacts {
  tokens.input = rows[start + 3] as number;
  tokens.output = rows[start + 4] as number;
  tokens.cached = rows[start + 5] as number;
  tokens.reasoning = rows[start + 7] as number;
  facts.protocol = manner.protocol;
  facts.model = manner.model;
  facts.key = manner.keyId;
  facts.status = manner.status;
  facts.outcome = manner.outcome;
  facts.durationMs = (rows[start + 11] as number) / 1000;
  facts.firstByteMs = (rows[start + 12] as number) / 1000;
  facts.ownMs = rows[start + 15] as number;
  facts.requestBytes = rows[start + 8] as number;
  facts.responseBytes = rows[start + 9] as number;
  facts.usage = manner.tokensKnown === 'none' ? null : tokens;
  facts.costNanos = rows[start + 14] as number;
  return facts;
}

/** Adds the numbers of a call to the sums. One for each call, so nothing is made for it. */
function addRow(
  totals: UsageTotals,
  { outcome, tokensKnown }: Manner,
  rows: Float64Array,
  start: number,
): void {
  totals.calls += 1;
  if (outcome === 'incomplete') totals.incomplete += 1;
  if (outcome === 'refused') totals.refused += 1;
  if (outcome === 'client_gone') totals.clientGone += 1;
  if (outcome === 'upstream_error') totals.upstreamErrors += 1;
  if (tokensKnown === 'partial' || tokensKnown === 'estimated') totals.inexact += 1;
  totals.inputTokens = sum(totals.inputTokens, rows[start + 3] as number);
  totals.outputTokens = sum(totals.outputTokens, rows[start + 4] as number);
  totals.cachedTokens = sum(totals.cachedTokens, rows[start + 5] as number);
  totals.cacheWrittenTokens = sum(totals.cacheWrittenTokens, rows[start + 6] as number);
  totals.reasoningTokens = sum(totals.reasoningTokens, rows[start + 7] as number);
  totals.bytesIn = sum(totals.bytesIn, rows[start + 8] as number);
  totals.bytesOut = sum(totals.bytesOut, rows[start + 9] as number);
  totals.mediaMs = sum(totals.mediaMs, (rows[start + 10] as number) * 1000);
  totals.costNanoUsd = sum(totals.costNanoUsd, rows[start + 14] as number);
}
