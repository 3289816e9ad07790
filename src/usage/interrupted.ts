import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Usage } from '../conversation/usage.js';
import { type CallRecord, isCall, none, unknownCost } from '../metrics/call-record.js';
import type { Recorder } from '../metrics/recorder.js';
import { maxSkewMs, type ProcessMark } from '../store/process-mark.js';
import type { Ledger, Store } from '../store/store.js';
import { isObject, parseObject } from '../wire/json.js';
import { readRow } from './call-rows.js';
import { tableSpanMs } from './call-table.js';
import { isTime, type LedgerRecord } from './ledger-record.js';
import { keptMs, type OpenCallsValue, openCallsCollection } from './open-calls.js';
import { readPage } from './queries.js';
import { usageLedger } from './sums.js';
import { appendOnce, type UsageRetention } from './writer.js';

/** Delays before the first round, between rounds, and after a failed one. */
const firstMs = 1000;
const intervalMs = 60_000;
const retryMs = 5000;
/** Failures in a row before one is logged: a minute of them is more than a short outage of the store. */
const failuresUntilLogged = 12;
/** One of all processes searches, once a minute; its claim on the search lasts this long. */
const searchMs = 50_000;
const recordsOfPage = 20;
const linesOfPage = 50;
/** Most records read in a round; the rest is left for the next. */
const maxRecords = 10_000;
/** A process that has claimed an ended process's calls appends their lines within this time, or has ended itself. */
const claimMs = 60_000;
const defaultLastWritesMs = 1000;

interface InterruptedOptions {
  readonly store: Store & Ledger;
  /**
   * @param at Unix milliseconds by this host's clock: when the process last wrote its record
   * @returns whether a process has ended, or null if this host cannot tell
   */
  hasEnded(writer: ProcessMark, at: number): boolean | null;
  /** For null of `hasEnded`: a process counts as ended if it has renewed no record for this many milliseconds. */
  readonly silentMs: number;
  /** How long after a process's end its last writes may still reach a database; default one second. */
  readonly lastWritesMs?: number;
  retention(): UsageRetention;
  /** Counts calls in the metrics; see `UsageWriterOptions`. */
  readonly record: Recorder['recordSums'];
}

/** Calls of one process whose end was never recorded. */
interface InterruptedCalls {
  readonly writer: ProcessMark;
  readonly calls: number;
}

interface FoundRecord {
  readonly id: string;
  readonly value: OpenCallsValue;
}

/**
 * Searches soon after the start, since a killed process is restarted immediately. After that, one of all processes
 * searches once a minute. Findings are logged.
 */
export function startInterruptedSearch({
  log,
  mayFindAny,
  ...options
}: InterruptedOptions & {
  readonly log: Logger;
  /** Returns false for a store that was never used, which a read would create. */
  mayFindAny(): boolean;
}): { stop(): void } {
  const { store } = options;
  const search = new InterruptedSearch(options);
  let isFirst = true;
  let failures = 0;
  let isStopped = false;
  let timer = setTimeout(() => void look(), firstMs).unref();
  const look = async (): Promise<void> => {
    let nextMs = intervalMs;
    try {
      const isDue =
        mayFindAny() && (isFirst || (await store.claim(`${openCallsCollection} search`, searchMs)));
      const found = isDue ? await search.round() : [];
      isFirst = false;
      for (const { writer, calls } of found)
        log.error(
          { process: writer.process, calls },
          'found calls that were interrupted when their process ended',
        );
      failures = 0;
    } catch (error) {
      failures++;
      // Other users of the store report that it is unavailable.
      if (failures === failuresUntilLogged && !isStopped)
        log.warn({ err: error }, 'cannot search for interrupted calls');
      nextMs = retryMs;
    }
    if (!isStopped) timer = setTimeout(() => void look(), nextMs).unref();
  };
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** Finds calls that were in flight when their process ended, and appends their missing lines to the ledger. */
export class InterruptedSearch {
  readonly #options: InterruptedOptions;

  constructor(options: InterruptedOptions) {
    this.#options = options;
  }

  /**
   * @returns the calls found, each once across all processes
   * @throws {GatewayError} the store's error
   */
  async round(): Promise<readonly InterruptedCalls[]> {
    const { store, lastWritesMs = defaultLastWritesMs } = this.#options;
    const found: InterruptedCalls[] = [];
    const ended = await this.#ended();
    if (ended.size > 0) await pause(lastWritesMs);
    for (const [series, records] of ended) {
      const [first] = records;
      if (first === undefined || !(await store.claim(`${openCallsCollection} ${series}`, claimMs))) continue;
      const calls = await this.#appendMissing(series, records);
      if (calls > 0) found.push({ writer: first.value.writer, calls });
    }
    return found;
  }

  /** Records of ended processes, by the prefix of their ids. */
  async #ended(): Promise<ReadonlyMap<string, FoundRecord[]>> {
    const { store } = this.#options;
    const ended = new Map<string, FoundRecord[]>();
    let next: string | null = null;
    let looked = 0;
    do {
      const page = await store.list(openCallsCollection, recordsOfPage, next);
      for (const { id, value: text, leftMs } of page.records) {
        const value = readValue(text);
        if (value === null || !this.#hasEnded(value.writer, keptMs - leftMs)) continue;
        const series = seriesOf(id);
        ended.set(series, [...(ended.get(series) ?? []), { id, value }]);
      }
      next = page.next;
      looked += page.records.length;
    } while (next !== null && looked < maxRecords);
    return ended;
  }

  /**
   * @param ageMs since the record was written, by the store's clock. That of the writer's host may differ from this
   * host's, and calls that are still in flight would be recorded twice
   */
  #hasEnded(writer: ProcessMark, ageMs: number): boolean {
    return this.#options.hasEnded(writer, Date.now() - ageMs) ?? ageMs >= this.#options.silentMs;
  }

  /** Appends the missing lines of one process's calls. @returns the number of calls appended */
  async #appendMissing(series: string, records: readonly FoundRecord[]): Promise<number> {
    const { store } = this.#options;
    const since = Math.min(...records.map(({ value }) => value.since));
    const inLedger = await this.#idsOfLinesSince(series, since);
    let calls = 0;
    for (const { id, value } of records) {
      const open = readPage(value.page);
      for (const each of await this.#idsOfRows(open)) inLedger.add(each);
      const missing = open.filter(({ requestId }) => !inLedger.has(requestId));
      if (missing.length > 0 && (await this.#append(id, missing))) calls += missing.length;
      await store.remove(openCallsCollection, id);
    }
    return calls;
  }

  /** The ids of those calls that the ledger has as rows. */
  async #idsOfRows(calls: readonly LedgerRecord[]): Promise<readonly string[]> {
    const stored = await this.#options.store.calls?.find(calls.map(({ requestId }) => requestId));
    return (stored ?? [])
      .map(readRow)
      .flatMap((record) => (record !== null && isCall(record.outcome) ? [record.requestId] : []));
  }

  /** The ids of a process's calls that have packed lines since a time. */
  async #idsOfLinesSince(series: string, since: number): Promise<Set<string>> {
    const inLedger = new Set<string>();
    const range = { from: Math.max(0, since - tableSpanMs), until: Date.now() + maxSkewMs };
    let next: string | null = null;
    do {
      const page = await this.#options.store.readLines(usageLedger, range, linesOfPage, next);
      for (const { value } of page.lines) {
        // On a busy host, most lines are of other processes.
        if (!value.includes(series)) continue;
        for (const { requestId, outcome } of readPage(value)) if (isCall(outcome)) inLedger.add(requestId);
      }
      next = page.next;
    } while (next !== null);
    return inLedger;
  }

  async #append(id: string, records: readonly LedgerRecord[]): Promise<boolean> {
    const { store, record, retention } = this.#options;
    const calls = records.map((each) => ({ call: callOf(each), at: each.at }));
    // Unique to this record, and the same at every try.
    const name = `${openCallsCollection} ${id}`;
    return appendOnce(store, name, { calls, record, retention: retention() });
  }
}

function seriesOf(id: string): string {
  return id.slice(0, Math.max(0, id.indexOf('/')));
}

/** @returns null for a value of another version, or a damaged one */
function readValue(text: string): OpenCallsValue | null {
  const value = parseObject(text);
  return isValue(value) ? value : null;
}

function isValue(value: unknown): value is OpenCallsValue {
  if (!isObject(value)) return false;
  const { writer, at, since, page } = value;
  return isTime(at) && isTime(since) && typeof page === 'string' && isMark(writer);
}

function isMark(mark: unknown): mark is ProcessMark {
  if (!isObject(mark)) return false;
  const { host, boot, started, process } = mark;
  return [host, boot, started].every((text) => typeof text === 'string') && typeof process === 'number';
}

/** Converts a ledger record back to a call record for the ledger's writer. */
export function callOf(record: LedgerRecord): CallRecord {
  const { requestId, firstByteMs, paidNanoUsd, ...others } = record;
  return {
    ...others,
    id: requestId,
    number: -1,
    method: '',
    path: '',
    client: null,
    error: null,
    cause: null,
    usage: usageOf(record),
    givenUp: null,
    otherAttempts: null,
    leftOut: [],
    lostInAnswer: [],
    paidNanoUsd: paidNanoUsd ?? unknownCost,
    isMetered: true,
    endsLater: false,
    endedAt: 0,
    firstByteMs: firstByteMs ?? none,
    ownMs: none,
  };
}

function usageOf(record: LedgerRecord): Usage | null {
  if (record.tokensKnown === 'none') return null;
  return {
    input: record.inputTokens,
    output: record.outputTokens,
    cached: record.cachedTokens,
    cacheWritten: record.cacheWrittenTokens,
    reasoning: record.reasoningTokens,
    searches: record.searches,
    tier: record.tier,
    ...(record.geo === null ? {} : { geo: record.geo }),
    parts: {
      audioInput: record.audioInputTokens,
      imageInput: record.imageInputTokens,
      videoInput: record.videoInputTokens,
      cachedAudio: record.cachedAudioTokens,
      cachedImage: record.cachedImageTokens,
      cacheWrittenHour: record.cacheWrittenHourTokens,
      audioOutput: record.audioOutputTokens,
      imageOutput: record.imageOutputTokens,
    },
    partial: true,
  };
}
