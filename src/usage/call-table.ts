import type { Protocol } from '../config/types.js';
import type { Usage } from '../conversation/usage.js';
import type { CallTimes } from '../metrics/call-times.js';
import { mostAdded } from '../metrics/tables.js';
import { targetName } from '../metrics/target-name.js';
import { dayMs, dayStart } from './budget.js';
import { type EndedCall, none, ownMs } from './ended-call.js';
import type { TokenSource, UsageEntry } from './entry.js';
import type { amountNames, UsageTotals } from './sums.js';

/** How long after the first call of a table its last one has ended, at most: less than that, in milliseconds. */
export const tableSpanMs = 1000;
/** Calls of one table, and so its manners. */
export const mostCalls = 1000;
/** The numbers of a row, by their place in it. */
const column = {
  /** Index among the table's manners. */
  manner: 0,
  /** Milliseconds since the table's first call ended. */
  since: 1,
  /** Number of its id, or below zero: of `ids`, from -1 on. */
  id: 2,
  inputTokens: 3,
  outputTokens: 4,
  cachedTokens: 5,
  cacheWrittenTokens: 6,
  reasoningTokens: 7,
  bytesIn: 8,
  bytesOut: 9,
  mediaSeconds: 10,
  /** Microseconds, as the next one. */
  duration: 11,
  firstByte: 12,
  retries: 13,
  costNanoUsd: 14,
  /** Milliseconds. */
  own: 15,
} as const;
/** So many of the columns, the first ones, are in the ledger, in this order. */
export const keptColumns = 15;
export const rowLength = 16;
/** From the one to the other are numbers that are added up as they are. */
const firstAdded = column.inputTokens;
const lastAdded = column.bytesOut;
/** Where the sums of a manner have the number of its calls. */
const callsSum = column.manner;

/** What calls have in common again and again, so that it is said once. */
export type Manner = Pick<
  UsageEntry,
  'keyId' | 'groups' | 'model' | 'target' | 'status' | 'outcome' | 'tokensKnown'
> & { readonly protocol: Protocol | null };

/** What the numbers of calls of one manner add up to, at most `Number.MAX_SAFE_INTEGER`. Those that cannot be meant add
 * nothing. */
export interface AlikeCalls extends Readonly<Pick<UsageTotals, 'calls' | (typeof amountNames)[number]>> {
  readonly manner: Manner;
}

/** What a manner was made of: to compare that takes less time than to compare names. */
interface MannerSource extends Pick<EndedCall, 'key' | 'route' | 'model' | 'target' | 'outcome'> {
  readonly status: number;
  readonly tokensKnown: TokenSource;
  /** Of the manner, in the table. */
  readonly index: number;
}

/**
 * Calls that have ended within one second of one day, a row of numbers each. What is done for each of them is a part of
 * every request, and so there is little of it: numbers are put in a row, where they wait for the others. All else is
 * done for many of them at once, when the table is full or somebody asks. Used for one lot of calls after the other.
 */
export class CallTable {
  /** Unix milliseconds: when its first call ended. */
  at = 0;
  /** How many calls it holds. */
  length = 0;
  /** One row after the other, of which only those of its calls hold anything. */
  readonly rows = new Float64Array(mostCalls * rowLength);
  readonly manners: Manner[] = [];
  /** Ids that have no number. */
  readonly ids: string[] = [];
  #endsAt = 0;
  /** How many of its calls `count` has told. */
  #counted = 0;
  /** By manner and column. */
  readonly #sums = new Float64Array(mostCalls * rowLength);
  /** What the manners of each key were made of. */
  readonly #byKey = new Map<EndedCall['key'], MannerSource[]>();
  #last: MannerSource | null = null;

  /**
   * Forgets its calls, and has room for others.
   * @param at whole Unix milliseconds: when the first of them ended
   */
  begin(at: number): void {
    this.end();
    this.at = at;
    this.#endsAt = Math.min(at + tableSpanMs, dayStart(at) + dayMs);
  }

  /** Forgets its calls, and has no room for others until it begins anew. */
  end(): void {
    this.length = 0;
    this.#endsAt = 0;
    this.#counted = 0;
    this.manners.length = 0;
    this.ids.length = 0;
    this.#byKey.clear();
    this.#last = null;
  }

  /** Whether a call that ended at a time may be added. */
  hasRoom(at: number): boolean {
    return at >= this.at && at < this.#endsAt && this.length < mostCalls;
  }

  /**
   * Adds a call for which there is room. Of the call, words and numbers are kept, and until the table ends the key, the
   * model and the target that are the same for many.
   * @param at whole Unix milliseconds: when it ended
   */
  add(call: EndedCall, at: number, costNanoUsd: number): void {
    const { rows } = this;
    const { exchange, usage } = call;
    const start = this.length++ * rowLength;
    // By `column`, whose names would make this so long that it takes a fifth more time.
    rows[start] = this.#indexOf(call);
    rows[start + 1] = at - this.at;
    rows[start + 2] = exchange.number < 0 ? -this.ids.push(exchange.id) : exchange.number;
    rows[start + 3] = usage === null ? 0 : usage.input;
    rows[start + 4] = usage === null ? 0 : usage.output;
    rows[start + 5] = usage === null ? 0 : usage.cached;
    rows[start + 6] = usage === null ? 0 : usage.cacheWritten;
    rows[start + 7] = usage === null ? 0 : usage.reasoning;
    rows[start + 8] = exchange.bytesIn;
    rows[start + 9] = exchange.bytesOut;
    rows[start + 10] = call.isServed ? call.mediaSeconds : 0;
    rows[start + 11] = Math.round((call.endedAt - call.startedAt) * 1000);
    rows[start + 12] = call.answeredAt > 0 ? Math.round((call.answeredAt - call.startedAt) * 1000) : none;
    rows[start + 13] = call.retries;
    rows[start + 14] = costNanoUsd;
    rows[start + 15] = ownMs(call);
  }

  /**
   * Tells of the calls that were added since the last time.
   * @param record counts calls, once, and gives what counts their times
   */
  count(record: (alike: AlikeCalls) => CallTimes): void {
    if (this.#counted === this.length) return;
    this.#addUp();
    const times = this.manners.map((manner, index) => {
      const alike = alikeOf(manner, this.#sums, index * rowLength);
      return alike.calls === 0 ? null : record(alike);
    });
    const { rows } = this;
    const { manner, duration, firstByte, own } = column;
    for (; this.#counted < this.length; this.#counted++) {
      const start = this.#counted * rowLength;
      times[rows[start + manner] as number]?.observe(
        (rows[start + duration] as number) / 1000,
        (rows[start + firstByte] as number) / 1000,
        rows[start + own] as number,
      );
    }
  }

  /**
   * Adds the numbers of the calls that were not counted yet, by their manner, in the columns of these numbers; of media
   * they are milliseconds.
   */
  #addUp(): void {
    const { rows } = this;
    const sums = this.#sums;
    sums.fill(0, 0, this.manners.length * rowLength);
    const { manner, mediaSeconds, costNanoUsd } = column;
    for (let call = this.#counted; call < this.length; call++) {
      const start = call * rowLength;
      const sum = (rows[start + manner] as number) * rowLength;
      (sums[sum + callsSum] as number) += 1;
      for (let index = firstAdded; index <= lastAdded; index++)
        addTo(sums, sum + index, rows[start + index] as number);
      addTo(sums, sum + mediaSeconds, Math.round((rows[start + mediaSeconds] as number) * 1000));
      addTo(sums, sum + costNanoUsd, rows[start + costNanoUsd] as number);
    }
  }

  #indexOf(call: EndedCall): number {
    const last = this.#last;
    if (last !== null && isOf(last, call)) return last.index;
    this.#last = this.#find(call);
    return this.#last.index;
  }

  #find(call: EndedCall): MannerSource {
    const { key, route, model, target, outcome } = call;
    let ofKey = this.#byKey.get(key);
    if (ofKey === undefined) {
      ofKey = [];
      this.#byKey.set(key, ofKey);
    }
    for (const known of ofKey) {
      if (isOf(known, call)) return known;
    }
    const { status } = call.exchange;
    const tokensKnown = tokenSource(call.usage);
    const added = { key, route, model, target, outcome, status, tokensKnown, index: this.manners.length };
    ofKey.push(added);
    this.manners.push({
      keyId: key === null ? null : key.id,
      groups: key === null ? noGroups : key.groups,
      protocol: route === null ? null : route.protocol,
      model: model === null ? null : model.name,
      target: target === null ? null : targetName(target),
      status,
      outcome,
      tokensKnown,
    });
    return added;
  }
}

/** Adds a number to a sum. One that cannot be meant adds nothing, and no sum goes beyond what is counted at once. */
function addTo(sums: Float64Array, at: number, value: number): void {
  if (value > 0 && value <= mostAdded) sums[at] = Math.min((sums[at] as number) + value, mostAdded);
}

const noGroups: readonly string[] = [];

function isOf(source: MannerSource, call: EndedCall): boolean {
  return (
    source.key === call.key &&
    source.model === call.model &&
    source.target === call.target &&
    source.route === call.route &&
    source.status === call.exchange.status &&
    source.outcome === call.outcome &&
    source.tokensKnown === tokenSource(call.usage)
  );
}

function tokenSource(usage: Usage | null): TokenSource {
  if (usage === null) return 'none';
  if (usage.partial) return 'partial';
  return usage.estimated ? 'estimated' : 'exact';
}

/** @param sums of the calls of all manners @param start where those of this manner begin */
function alikeOf(manner: Manner, sums: Float64Array, start: number): AlikeCalls {
  return {
    manner,
    calls: sums[start + callsSum] as number,
    inputTokens: sums[start + column.inputTokens] as number,
    outputTokens: sums[start + column.outputTokens] as number,
    cachedTokens: sums[start + column.cachedTokens] as number,
    cacheWrittenTokens: sums[start + column.cacheWrittenTokens] as number,
    reasoningTokens: sums[start + column.reasoningTokens] as number,
    bytesIn: sums[start + column.bytesIn] as number,
    bytesOut: sums[start + column.bytesOut] as number,
    mediaMs: sums[start + column.mediaSeconds] as number,
    costNanoUsd: sums[start + column.costNanoUsd] as number,
  };
}
