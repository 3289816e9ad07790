import { serviceTiers, type Usage } from '../conversation/usage.js';
import { type CallRecord, none } from '../metrics/call-record.js';
import { type CallTimes, mostAdded } from '../metrics/tables.js';
import { dayMs, dayStart } from './budget.js';
import type { TokenSource } from './ledger-record.js';

/** The calls of a table ended within less than this many milliseconds. */
export const tableSpanMs = 1000;
/** Most calls, and so groups, of a table: counting and writing a full one with a key per call takes a millisecond. */
export const mostCalls = 500;
/** The columns of a row. */
export const column = {
  /** Index among the table's groups. */
  group: 0,
  /** Milliseconds since the table's first call ended. */
  since: 1,
  /** Number of its id; a negative one refers to `ids`, starting with -1. */
  id: 2,
  inputTokens: 3,
  outputTokens: 4,
  cachedTokens: 5,
  cacheWrittenTokens: 6,
  reasoningTokens: 7,
  bytesIn: 8,
  bytesOut: 9,
  mediaSeconds: 10,
  /** Microseconds, like the next column. */
  duration: 11,
  firstByte: 12,
  retries: 13,
  costNanoUsd: 14,
  audioInputTokens: 15,
  audioOutputTokens: 16,
  imageInputTokens: 17,
  imageOutputTokens: 18,
  cachedAudioTokens: 19,
  cachedImageTokens: 20,
  cacheWrittenHourTokens: 21,
  searches: 22,
  units: 23,
  /** `unknownCost` if not known, which adds nothing to sums. */
  paidNanoUsd: 24,
  /** Index into `serviceTiers`. */
  tier: 25,
  videoInputTokens: 26,
  characters: 27,
  /** Milliseconds. */
  own: 28,
} as const;
/** This many leading columns are written to the ledger, in this order; new ones go last. */
export const keptColumns = 28;
/** Columns of the second, third and fifth form of the ledger. */
export const oldColumns = 15;
export const thirdColumns = 26;
export const fifthColumns = 27;
export const rowLength = 29;
/** Bounds of the two ranges of columns that are summed without conversion. */
const firstAdded = column.inputTokens;
const lastAdded = column.bytesOut;
const firstAddedMore = column.audioInputTokens;
const lastAddedMore = column.units;
/** Most groups of a key that are searched one by one: one key may call a thousand models within a second. */
const maxGroupsPerKey = 4;
/** Column of a group's sums that holds the number of its calls. */
export const callsSum = column.group;

/** The members that the calls of a group have in common; a page of the ledger holds them once per group. */
export type CallGroup = Pick<
  CallRecord,
  'keyId' | 'groups' | 'protocol' | 'model' | 'target' | 'status' | 'outcome'
> & {
  readonly tokensKnown: TokenSource;
  /** Like `Usage.geo`; null if the upstream did not say. */
  readonly geo: string | null;
};

/**
 * Counts the calls of a group.
 * @param sums those of all groups, by `column`: capped at `Number.MAX_SAFE_INTEGER`, without numbers out of range. Media
 * time is in milliseconds.
 * @param start index of those of this group
 * @returns a counter of the calls' times
 */
export type CountGroup = (group: CallGroup, sums: Float64Array, start: number) => CallTimes;

/**
 * Calls that ended within one second of one day, one row of numbers for each. Adding a call is on the path of every
 * request, so it only fills a row; everything else is done for many rows together, when the table is full or its sums
 * are requested. The table is reused afterwards.
 */
export class CallTable {
  /** Unix milliseconds: end of its first call. */
  at = 0;
  /** The number of its calls. */
  length = 0;
  /** The rows of its calls in sequence; the content after them is stale. */
  readonly rows = new Float64Array(mostCalls * rowLength);
  readonly callGroups: CallGroup[] = [];
  /** Ids without a number. */
  readonly ids: string[] = [];
  #endsAt = 0;
  /** The number of its calls that `count` has reported. */
  #counted = 0;
  /** Sums by group and column. */
  readonly #sums = new Float64Array(mostCalls * rowLength);
  /**
   * Lists of groups, newest first: one per key, and one per model for keys with more than a few groups. The maps hold
   * the index of the newest group, `#before` the index of the previous group of the list or -1, and `#depth` the length
   * of the list up to a group.
   */
  readonly #newestOfKey = new Map<string | null, number>();
  readonly #newestOfModel = new Map<string | null, number>();
  readonly #before = new Int16Array(mostCalls);
  readonly #depth = new Int16Array(mostCalls);
  /** Group objects, reused across tables: new ones for every table would burden the garbage collector. */
  readonly #recycled: Mutable<CallGroup>[] = [];
  /** Index of the group of the last call; -1 before the first. */
  #last = -1;

  /**
   * Clears the table and opens it for new calls.
   * @param at end of the first call in whole Unix milliseconds
   */
  begin(at: number): void {
    this.end();
    this.at = at;
    this.#endsAt = Math.min(at + tableSpanMs, dayStart(at) + dayMs);
  }

  /** Clears the table and closes it until `begin` is called. */
  end(): void {
    this.length = 0;
    this.#endsAt = 0;
    this.#counted = 0;
    this.callGroups.length = 0;
    this.ids.length = 0;
    this.#newestOfKey.clear();
    this.#newestOfModel.clear();
    this.#last = -1;
  }

  /** The number of calls added since the last `count`. */
  get uncounted(): number {
    return this.length - this.#counted;
  }

  /** Whether a call that ended at a time fits. */
  hasRoom(at: number): boolean {
    return at >= this.at && at < this.#endsAt && this.length < mostCalls;
  }

  /**
   * Adds a call, for which `hasRoom` is true. Copies its texts and numbers.
   * @param at end of the call in whole Unix milliseconds
   */
  add(call: CallRecord, at: number): void {
    const { rows } = this;
    const { usage } = call;
    const start = this.length++ * rowLength;
    // Literals in place of `column`'s names, which made this function a fifth slower.
    rows[start] = this.#indexOf(call);
    rows[start + 1] = at - this.at;
    rows[start + 2] = call.number < 0 ? -this.ids.push(call.id) : call.number;
    rows[start + 3] = usage === null ? 0 : usage.input;
    rows[start + 4] = usage === null ? 0 : usage.output;
    rows[start + 5] = usage === null ? 0 : usage.cached;
    rows[start + 6] = usage === null ? 0 : usage.cacheWritten;
    rows[start + 7] = usage === null ? 0 : usage.reasoning;
    rows[start + 8] = call.bytesIn;
    rows[start + 9] = call.bytesOut;
    rows[start + 10] = call.mediaSeconds;
    rows[start + 11] = Math.round(call.durationMs * 1000);
    rows[start + 12] = call.firstByteMs === none ? none : Math.round(call.firstByteMs * 1000);
    rows[start + 13] = call.retries;
    rows[start + 14] = call.costNanoUsd;
    const parts = usage === null ? undefined : usage.parts;
    rows[start + 15] = parts === undefined ? 0 : parts.audioInput;
    rows[start + 16] = parts === undefined ? 0 : parts.audioOutput;
    rows[start + 17] = parts === undefined ? 0 : parts.imageInput;
    rows[start + 18] = parts === undefined ? 0 : parts.imageOutput;
    rows[start + 19] = parts === undefined ? 0 : parts.cachedAudio;
    rows[start + 20] = parts === undefined ? 0 : parts.cachedImage;
    rows[start + 21] = parts === undefined ? 0 : parts.cacheWrittenHour;
    rows[start + 22] = usage === null ? 0 : (usage.searches ?? 0);
    rows[start + 23] = call.units;
    rows[start + 24] = call.paidNanoUsd;
    rows[start + 25] = usage === null || usage.tier === undefined ? 0 : serviceTiers.indexOf(usage.tier);
    rows[start + 26] = parts === undefined ? 0 : parts.videoInput;
    rows[start + 27] = call.characters;
    rows[start + 28] = call.ownMs;
  }

  /** Reports the calls added since the last `count`, each once. */
  count(record: CountGroup): void {
    if (this.#counted === this.length) return;
    this.#addUp();
    const times = this.callGroups.map((group, index) => {
      const start = index * rowLength;
      return this.#sums[start + callsSum] === 0 ? null : record(group, this.#sums, start);
    });
    const { rows } = this;
    const { group, duration, firstByte, own } = column;
    for (; this.#counted < this.length; this.#counted++) {
      const start = this.#counted * rowLength;
      times[rows[start + group] as number]?.observe(
        (rows[start + duration] as number) / 1000,
        (rows[start + firstByte] as number) / 1000,
        rows[start + own] as number,
      );
    }
  }

  /**
   * Adds the numbers of the calls not yet counted to the sums of their groups, column by column. Media time is in
   * milliseconds.
   */
  #addUp(): void {
    const { rows } = this;
    const sums = this.#sums;
    sums.fill(0, 0, this.callGroups.length * rowLength);
    const { group, mediaSeconds, costNanoUsd, paidNanoUsd: paid, videoInputTokens, characters } = column;
    for (let call = this.#counted; call < this.length; call++) {
      const start = call * rowLength;
      const sum = (rows[start + group] as number) * rowLength;
      (sums[sum + callsSum] as number) += 1;
      for (let index = firstAdded; index <= lastAdded; index++)
        addTo(sums, sum + index, rows[start + index] as number);
      const isCorrection = this.callGroups[rows[start + group] as number]?.outcome === 'correction';
      const add = isCorrection ? addCorrection : addTo;
      add(sums, sum + mediaSeconds, Math.round((rows[start + mediaSeconds] as number) * 1000));
      add(sums, sum + costNanoUsd, rows[start + costNanoUsd] as number);
      add(sums, sum + paid, rows[start + paid] as number);
      for (let index = firstAddedMore; index <= lastAddedMore; index++)
        addTo(sums, sum + index, rows[start + index] as number);
      for (let index = videoInputTokens; index <= characters; index++)
        addTo(sums, sum + index, rows[start + index] as number);
    }
  }

  #indexOf(call: CallRecord): number {
    const last = this.callGroups[this.#last];
    if (last === undefined || !isOf(last, call)) this.#last = this.#find(call);
    return this.#last;
  }

  #find(call: CallRecord): number {
    const ofKey = this.#newestOfKey.get(call.keyId) ?? -1;
    const found = this.#seek(call, ofKey);
    if (found !== -1) return found;
    if (ofKey === -1 || (this.#depth[ofKey] as number) < maxGroupsPerKey)
      return this.#append(call, this.#newestOfKey, call.keyId, ofKey);
    const ofModel = this.#newestOfModel.get(call.model) ?? -1;
    const other = this.#seek(call, ofModel);
    return other === -1 ? this.#append(call, this.#newestOfModel, call.model, ofModel) : other;
  }

  /** Searches a list for the group of a call, from `newest` backwards. @returns -1 if it is not there */
  #seek(call: CallRecord, newest: number): number {
    let index = newest;
    while (index !== -1 && !isOf(this.callGroups[index] as CallGroup, call))
      index = this.#before[index] as number;
    return index;
  }

  #append(call: CallRecord, lists: Map<string | null, number>, list: string | null, newest: number): number {
    const index = this.callGroups.push(this.#groupOf(call)) - 1;
    this.#before[index] = newest;
    this.#depth[index] = newest === -1 ? 1 : (this.#depth[newest] as number) + 1;
    lists.set(list, index);
    return index;
  }

  /** Adds the group of a call. */
  #groupOf({ keyId, groups, protocol, model, target, status, outcome, usage }: CallRecord): CallGroup {
    const tokensKnown = tokenSource(usage);
    const geo = usage?.geo ?? null;
    const unused = this.#recycled[this.callGroups.length];
    if (unused === undefined) {
      const made = { keyId, groups, protocol, model, target, status, outcome, tokensKnown, geo };
      this.#recycled.push(made);
      return made;
    }
    unused.keyId = keyId;
    unused.groups = groups;
    unused.protocol = protocol;
    unused.model = model;
    unused.target = target;
    unused.status = status;
    unused.outcome = outcome;
    unused.tokensKnown = tokensKnown;
    unused.geo = geo;
    return unused;
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Adds a number to a sum. A negative or too large one adds nothing, and no sum exceeds `mostAdded`. */
function addTo(sums: Float64Array, at: number, value: number): void {
  if (value > 0 && value <= mostAdded) sums[at] = Math.min((sums[at] as number) + value, mostAdded);
}

/** Like `addTo`, for numbers that a correction may make negative. */
function addCorrection(sums: Float64Array, at: number, value: number): void {
  if (value < 0 && value >= -mostAdded) sums[at] = Math.max((sums[at] as number) + value, -mostAdded);
  else addTo(sums, at, value);
}

function isOf(group: CallGroup, call: CallRecord): boolean {
  return (
    group.keyId === call.keyId &&
    group.model === call.model &&
    group.target === call.target &&
    group.protocol === call.protocol &&
    group.status === call.status &&
    group.outcome === call.outcome &&
    group.groups === call.groups &&
    group.tokensKnown === tokenSource(call.usage) &&
    group.geo === (call.usage?.geo ?? null)
  );
}

function tokenSource(usage: Usage | null): TokenSource {
  if (usage === null) return 'none';
  if (usage.partial) return 'partial';
  return usage.estimated ? 'estimated' : 'exact';
}
