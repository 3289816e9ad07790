import { isEntry, isTime, type UsageEntry, type UsageEntryLike } from './entry.js';
import { writeNumbers } from './number-text.js';

/** How long after the first call of a page its last one has ended, at most: less than that, in milliseconds. */
export const pageSpanMs = 1000;
/** Calls of one page. */
const mostCalls = 200;
/** The form of pages. */
const version = 1;
/** Numbers of each call in `rows`. */
const rowLength = 14;
/** Stands for a time that there is not. */
const none = -1;

/** What calls have in common again and again, so that a page says it once. */
type Manner = Pick<
  UsageEntry,
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
 * Some calls as one text of JSON: a page of the ledger. What is done for each of them is a part of every request, and
 * so there is little of it: names that are known are compared, and numbers are put in a row, where they wait for
 * the others.
 */
export class UsagePage {
  /** Unix milliseconds: when its first call ended. */
  readonly at: number;
  readonly #manners: Manner[] = [];
  /** Those of each key. */
  readonly #byKey = new Map<string | null, NumberedManner[]>();
  readonly #ids: string[] = [];
  readonly #rows: Float64Array;
  #last: NumberedManner | null = null;

  /**
   * @param at when the first call ended, a time by `isTime`
   * @param rows made by `createRows`; of no other page until this one is written
   */
  constructor(at: number, rows: Float64Array) {
    this.at = at;
    this.#rows = rows;
  }

  /** Whether a call that ended at a time may be added. */
  hasRoom(at: number): boolean {
    return at >= this.at && at < this.at + pageSpanMs && this.#ids.length < mostCalls;
  }

  /** Adds a call for which there is room. Nothing of the entry is kept. */
  add(entry: UsageEntry): void {
    const rows = this.#rows;
    const start = this.#ids.length * rowLength;
    this.#ids.push(entry.requestId);
    // In the order in which `readCall` takes them.
    rows[start] = this.#indexOf(entry);
    rows[start + 1] = entry.at - this.at;
    rows[start + 2] = entry.inputTokens;
    rows[start + 3] = entry.outputTokens;
    rows[start + 4] = entry.cachedTokens;
    rows[start + 5] = entry.cacheWrittenTokens;
    rows[start + 6] = entry.reasoningTokens;
    rows[start + 7] = entry.bytesIn;
    rows[start + 8] = entry.bytesOut;
    rows[start + 9] = entry.mediaSeconds;
    rows[start + 10] = Math.round(entry.durationMs * 1000);
    rows[start + 11] = entry.firstByteMs === null ? none : Math.round(entry.firstByteMs * 1000);
    rows[start + 12] = entry.retries;
    rows[start + 13] = entry.costNanoUsd;
  }

  text(): string {
    const manners = JSON.stringify(this.#manners);
    const ids = JSON.stringify(this.#ids);
    const rows = writeNumbers(this.#rows, this.#ids.length * rowLength);
    return `{"v":${version},"at":${this.at},"manners":${manners},"ids":${ids},"rows":[${rows}]}`;
  }

  #indexOf(entry: UsageEntry): number {
    if (this.#last === null || !isOf(this.#last.manner, entry)) this.#last = this.#find(entry);
    return this.#last.index;
  }

  #find(entry: UsageEntry): NumberedManner {
    let ofKey = this.#byKey.get(entry.keyId);
    if (ofKey === undefined) {
      ofKey = [];
      this.#byKey.set(entry.keyId, ofKey);
    }
    for (const known of ofKey) {
      if (isOf(known.manner, entry)) return known;
    }
    const { keyId, groups, protocol, model, target, status, outcome, tokensKnown } = entry;
    const manner = { keyId, groups, protocol, model, target, status, outcome, tokensKnown };
    const added = { index: this.#manners.length, manner };
    this.#manners.push(manner);
    ofKey.push(added);
    return added;
  }
}

/** Groups are those of a key in the config: the same array as long as the key is the same. */
function isOf(manner: Manner, entry: UsageEntry): boolean {
  return (
    manner.keyId === entry.keyId &&
    manner.model === entry.model &&
    manner.target === entry.target &&
    manner.status === entry.status &&
    manner.outcome === entry.outcome &&
    manner.tokensKnown === entry.tokensKnown &&
    manner.protocol === entry.protocol &&
    manner.groups === entry.groups
  );
}

/** The calls of a page in the order in which they were added. What is damaged is left out, be it all of it. */
export function readPage(text: string): UsageEntry[] {
  const page = parse(text);
  if (page === null) return [];
  const entries: UsageEntry[] = [];
  for (const [index, requestId] of page.ids.entries()) {
    const entry = readCall(page, requestId, page.rows.slice(index * rowLength, (index + 1) * rowLength));
    if (isEntry(entry)) entries.push(entry);
  }
  return entries;
}

/** A page of which only the outline is sure. */
interface ParsedPage {
  readonly at: number;
  readonly manners: readonly ({ readonly [Name in keyof Manner]?: unknown } | null)[];
  readonly ids: readonly unknown[];
  readonly rows: readonly (number | null)[];
}

function parse(text: string): ParsedPage | null {
  let page: unknown;
  try {
    page = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof page !== 'object' || page === null) return null;
  const { v, at, manners, ids, rows } = page as Record<string, unknown>;
  if (v !== version || !isTime(at)) return null;
  if (!Array.isArray(manners) || !Array.isArray(ids) || !Array.isArray(rows)) return null;
  return { at, manners, ids, rows };
}

/** The fields of an entry in the order of the columns. */
function readCall(page: ParsedPage, requestId: unknown, row: ParsedPage['rows']): UsageEntryLike {
  const [index, sinceFirst, inputTokens, outputTokens, cachedTokens, cacheWrittenTokens, ...more] = row;
  const [reasoningTokens, bytesIn, bytesOut, mediaSeconds, duration, firstByte, retries, costNanoUsd] = more;
  const manner = page.manners[index ?? none] ?? null;
  return {
    at: page.at + (sinceFirst ?? Number.NaN),
    requestId,
    keyId: manner?.keyId,
    groups: manner?.groups,
    protocol: manner?.protocol,
    model: manner?.model,
    target: manner?.target,
    status: manner?.status,
    outcome: manner?.outcome,
    inputTokens,
    outputTokens,
    cachedTokens,
    cacheWrittenTokens,
    reasoningTokens,
    tokensKnown: manner?.tokensKnown,
    bytesIn,
    bytesOut,
    mediaSeconds,
    durationMs: milliseconds(duration),
    firstByteMs: firstByte === none ? null : milliseconds(firstByte),
    retries,
    costNanoUsd,
  };
}

function milliseconds(microseconds: number | null | undefined): number {
  return (microseconds ?? Number.NaN) / 1000;
}
