import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { UsageSettings } from '../config/types.js';
import { GatewayError } from '../errors.js';
import type { CallRecord } from '../metrics/call-record.js';
import type { CountedCalls, Recorder, TokenCounts } from '../metrics/recorder.js';
import type { CallTimes } from '../metrics/tables.js';
import { backOffBefore } from '../store/back-off.js';
import type { CallRows, Ledger, LedgerBatch, LedgerLine } from '../store/store.js';
import { dayMs } from './budget.js';
import { writeRows } from './call-rows.js';
import { CallTable } from './call-table.js';
import { isTime } from './ledger-record.js';
import { writePage } from './page.js';
import { type CallGroupSums, SumCollector, usageLedger } from './sums.js';

/** How long usage is kept, in milliseconds. */
export interface UsageRetention {
  readonly lineMs: number;
  readonly sumMs: number;
}

export interface UsageWriterOptions {
  readonly store: Pick<Ledger, 'append' | 'calls'>;
  /** What holds now; asked for each batch. */
  retention(): UsageRetention;
  /** Counts calls in the metrics, once, many at once and a while later. @returns what counts their times */
  readonly record: Recorder['recordSums'];
  /**
   * Told how many records were given up: there were too many while the store failed, the writer has ended, or they
   * cannot be written.
   */
  onDropped(records: number): void;
  /** Told each time that the store did not take a batch, with the number of records that wait. */
  onFailure(error: unknown, waiting: number): void;
  /** Told of each batch that the store has taken, with the number of records that wait behind it. */
  onTaken?(waiting: number): void;
  /** Longest wait of a record while the store takes all; 500 ms unless said otherwise. */
  readonly flushMs?: number;
  /**
   * Records of one batch; unless said otherwise 10,000, and 2,000 where they become rows: after an outage, when all
   * hosts have much to say, each batch is still taken within the time that a call of the store has.
   */
  readonly batchRecords?: number;
  /**
   * A batch ends with the first page, or part of one, behind so many sums: calls of many keys have as many. 1,000 unless
   * said otherwise, so that no batch takes a worker more than a moment to hand over.
   */
  readonly batchSums?: number;
  /** Records that wait beside the batch under way, while the store fails; 100,000 unless said otherwise. */
  readonly mostWaiting?: number;
  /** Bytes that these may take up in memory; 64 MiB unless said otherwise. */
  readonly mostWaitingBytes?: number;
  /** Back-off after the first failure, doubled after each one up to 5 s; 100 ms unless said otherwise. */
  readonly pauseMs?: number;
}

const defaultFlushMs = 500;
const defaultBatchRecords = { pages: 10_000, rows: 2000 } as const;
const defaultBatchSums = 1000;
const defaultMostWaiting = 100_000;
const defaultMostWaitingBytes = 64 * 1024 * 1024;
const firstPauseMs = 100;
const longestPauseMs = 5000;

/** A batch that takes no more calls: pages of them in the form that its store takes, and their sums. */
interface SealedBatch {
  readonly records: number;
  /** Unix milliseconds: when its first call ended. */
  readonly since: number;
  /** That it takes up in memory. */
  readonly bytes: number;
  readonly lines: readonly LedgerLine[];
  readonly calls: readonly CallRows[];
  readonly sums: ReturnType<SumCollector['sums']>;
  /** Whoever waits for it. */
  readonly onSettled: (() => void)[];
}

/** Writes the usage of a worker to the ledger, in batches, after the calls have ended. */
export class UsageWriter {
  readonly #options: UsageWriterOptions;
  readonly #flushMs: number;
  readonly #form: CallForm;
  readonly #batchRecords: number;
  readonly #batchSums: number;
  readonly #mostWaiting: number;
  readonly #mostWaitingBytes: number;
  readonly #pauses: ReturnType<typeof createPauses>;
  readonly #writer = randomUUID();
  /** The oldest first. */
  readonly #sealed: SealedBatch[] = [];
  readonly #table = new CallTable();
  #open: OpenBatch;
  /** The one that is under way to the store. */
  #current: SealedBatch | null = null;
  /** Records of all batches but that one. */
  #count = 0;
  /** Bytes of the sealed ones. */
  #bytes = 0;
  #lastNumber = 0;
  #isRunning = false;
  #timer: NodeJS.Timeout | null = null;
  /** The open one has waited long enough. */
  #isDue = false;
  #closing: Promise<void> | null = null;
  #hasEnded = false;

  constructor(options: UsageWriterOptions) {
    this.#options = options;
    this.#flushMs = options.flushMs ?? defaultFlushMs;
    this.#form = formOf(options.store);
    this.#batchRecords = options.batchRecords ?? defaultBatchRecords[this.#form];
    this.#batchSums = options.batchSums ?? defaultBatchSums;
    this.#mostWaiting = options.mostWaiting ?? defaultMostWaiting;
    this.#mostWaitingBytes = options.mostWaitingBytes ?? defaultMostWaitingBytes;
    this.#pauses = createPauses(options.pauseMs ?? firstPauseMs);
    this.#open = new OpenBatch(this.#table, options.record, this.#form);
  }

  /**
   * Takes note of a call, of which nothing but words and numbers is kept until they are stored.
   * @param at whole Unix milliseconds: when it ended
   * @returns false for one that is given up, and not counted either
   */
  add(call: CallRecord, at: number): boolean {
    if (this.#closing !== null || !this.#open.add(call, at)) {
      this.#options.onDropped(1);
      return false;
    }
    this.#count++;
    if (this.#open.records >= this.#batchRecords || this.#open.sums >= this.#batchSums) {
      this.#seal();
      this.#start();
    }
    while (this.#isTooMuch && this.#sealed.length > 0) this.#dropOldest();
    this.#timer ??= setTimeout(() => this.#onDue(), this.#flushMs).unref();
    return true;
  }

  get #isTooMuch(): boolean {
    return this.#count > this.#mostWaiting || this.#bytes > this.#mostWaitingBytes;
  }

  /** Has all calls counted that were added: the metrics are about to be read. */
  count(): void {
    this.#open.count();
  }

  /** Records that are not in the ledger yet. */
  waiting(): number {
    return this.#count + (this.#current?.records ?? 0);
  }

  /** For how long the oldest of them has waited, in milliseconds; 0 without any. @param now Unix milliseconds */
  lagMs(now: number): number {
    const oldest = this.#current ?? this.#sealed[0] ?? this.#open;
    return oldest.records === 0 ? 0 : Math.max(0, now - oldest.since);
  }

  /** What they take up in memory, but for those of the last second. */
  waitingBytes(): number {
    return this.#bytes + this.#open.bytes + (this.#current?.bytes ?? 0);
  }

  /** Resolves when what was added before is in the ledger, or was given up; never rejects. */
  flush(): Promise<void> {
    this.#seal();
    const last = this.#sealed.at(-1) ?? this.#current;
    if (last === null) return Promise.resolve();
    const done = new Promise<void>((resolve) => last.onSettled.push(resolve));
    this.#start();
    this.#pauses.end();
    return done;
  }

  /**
   * Writes what there is, but gives it up after `withinMs`. Resolves when it is done, and never rejects; records that
   * are added from then on are given up.
   */
  close(withinMs: number): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      if (this.#timer !== null) clearTimeout(this.#timer);
      const deadline = setTimeout(() => {
        this.#end();
        // What was waiting for its next attempt is told to be given up before that.
        setImmediate(resolve);
      }, withinMs);
      void this.flush().then(() => {
        clearTimeout(deadline);
        this.#end();
        resolve();
      });
    });
    return this.#closing;
  }

  #onDue(): void {
    this.#timer = null;
    this.#isDue = true;
    this.#start();
  }

  #start(): void {
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let batch = this.#nextBatch(); batch !== undefined; batch = this.#nextBatch()) {
      this.#current = batch;
      this.#count -= batch.records;
      this.#bytes -= batch.bytes;
      const number = ++this.#lastNumber;
      const isTaken = await this.#append(
        ledgerBatchOf(batch, this.#writer, number, this.#options.retention()),
      );
      this.#current = null;
      this.#settle(batch, isTaken ? 0 : batch.records);
    }
    this.#isRunning = false;
  }

  /** None that has room is closed while another is under way: a slow store would get many small ones. */
  #nextBatch(): SealedBatch | undefined {
    if (this.#sealed.length === 0 && this.#isDue) this.#seal();
    return this.#sealed.shift();
  }

  /** @returns false when the batch is given up */
  async #append(batch: LedgerBatch): Promise<boolean> {
    for (let attempt = 0; !this.#hasEnded; attempt++) {
      try {
        await this.#options.store.append(usageLedger, batch, attempt);
        this.#options.onTaken?.(this.#count);
        return true;
      } catch (error) {
        this.#options.onFailure(error, this.waiting());
        // What the store does not take for what it is, it will not take later.
        if (!(error instanceof GatewayError)) return false;
        if (!this.#hasEnded) await this.#pauses.pause(attempt);
      }
    }
    return false;
  }

  #seal(): void {
    this.#isDue = false;
    if (this.#open.records === 0) return;
    const batch = this.#open.seal();
    this.#bytes += batch.bytes;
    this.#sealed.push(batch);
    this.#open = new OpenBatch(this.#table, this.#options.record, this.#form);
  }

  #settle({ onSettled }: SealedBatch, dropped: number): void {
    if (dropped > 0) this.#options.onDropped(dropped);
    for (const tell of onSettled) tell();
  }

  #dropOldest(): void {
    const oldest = this.#sealed.shift();
    if (oldest === undefined) return;
    this.#count -= oldest.records;
    this.#bytes -= oldest.bytes;
    this.#settle(oldest, oldest.records);
  }

  #end(): void {
    this.#hasEnded = true;
    this.#pauses.end();
    this.#seal();
    while (this.#sealed.length > 0) this.#dropOldest();
  }
}

/** What was lost is logged at most once in so many milliseconds. */
const tellEveryMs = 10_000;

interface LoggedWriterOptions {
  readonly store: Pick<Ledger, 'append' | 'calls'>;
  /** What holds now. */
  settings(): UsageSettings;
  readonly recorder: Pick<Recorder, 'recordSums' | 'count'>;
  readonly log: Logger;
}

/** Makes a worker's writer of usage. That the store takes nothing is counted, and logged as it begins and ends. */
export function createUsageWriter({ store, settings, recorder, log }: LoggedWriterOptions): UsageWriter {
  let isFailing = false;
  let dropTold = Number.NEGATIVE_INFINITY;
  let untold = 0;
  return new UsageWriter({
    store,
    record: recorder.recordSums,
    retention: () => retentionOf(settings()),
    onFailure(error, waiting) {
      recorder.count('gateway_ledger_failures_total', 1);
      if (isFailing) return;
      isFailing = true;
      log.warn({ err: error, waiting }, 'the store accepts no ledger entries: they wait in memory');
    },
    onTaken(waiting) {
      if (!isFailing) return;
      isFailing = false;
      log.info({ waiting }, 'the store accepts ledger entries again');
    },
    onDropped(records) {
      recorder.count('gateway_ledger_dropped_total', records);
      untold += records;
      const now = performance.now();
      if (now - dropTold < tellEveryMs) return;
      dropTold = now;
      log.error({ entries: untold }, 'ledger entries were lost');
      untold = 0;
    },
  });
}

/** How long usage is kept by the config. */
export function retentionOf({ lineDays, sumDays }: UsageSettings): UsageRetention {
  return { lineMs: lineDays * dayMs, sumMs: sumDays * dayMs };
}

/** Pauses between attempts, of which there is one at a time. */
function createPauses(firstMs: number) {
  let resume: (() => void) | null = null;
  return {
    /** Longer with each attempt, and not the same for all workers. */
    pause: (attempt: number): Promise<void> =>
      new Promise((resolve) => {
        const timer = setTimeout(() => resume?.(), backOffBefore(attempt, firstMs, longestPauseMs)).unref();
        resume = () => {
          clearTimeout(timer);
          resume = null;
          resolve();
        };
      }),
    /** Ends the pause that is under way. */
    end: (): void => resume?.(),
  };
}

/** How calls go to the ledger: packed, as a line for each page of them, or one by one, as the rows of each page. */
type CallForm = 'pages' | 'rows';

/** @returns how a store takes calls */
function formOf({ calls }: Pick<Ledger, 'calls'>): CallForm {
  return calls === null ? 'pages' : 'rows';
}

/** A batch as a ledger takes it. */
function ledgerBatchOf(
  { lines, calls, sums }: SealedBatch,
  writer: string,
  number: number,
  { lineMs, sumMs }: UsageRetention,
): LedgerBatch {
  const batch = { writer, number, lines, lineTtlMs: lineMs, sums: { ...sums, ttlMs: sumMs } };
  return calls.length === 0 ? batch : { ...batch, calls };
}

/**
 * Appends calls under a name of their own: told again under it within a week, they are ignored.
 * @param at of a call: whole Unix milliseconds at which it ended; one without such a time is left out
 * @returns false when they were ignored
 * @throws {GatewayError} of the store, and then nobody knows whether they were taken
 */
export function appendOnce(
  store: Pick<Ledger, 'append' | 'calls'>,
  name: string,
  told: {
    readonly calls: readonly { readonly call: CallRecord; readonly at: number }[];
    readonly record: Recorder['recordSums'];
    readonly retention: UsageRetention;
  },
): Promise<boolean> {
  const batch = new OpenBatch(new CallTable(), told.record, formOf(store));
  for (const { call, at } of told.calls) batch.add(call, at);
  return store.append(usageLedger, ledgerBatchOf(batch.seal(), name, 1, told.retention));
}

/** Calls are counted at the latest when there are so many: those of as many keys take a millisecond for every few hundred. */
const mostUncounted = 125;

/**
 * Calls that go to the ledger together, as they end. Each page is written when it is full, so that of those that wait only
 * texts are kept.
 */
export class OpenBatch {
  readonly #lines: LedgerLine[] = [];
  readonly #calls: CallRows[] = [];
  readonly #form: CallForm;
  readonly #sums = new SumCollector();
  readonly #table: CallTable;
  readonly #record: Recorder['recordSums'];
  #records = 0;
  /** Of the pages that are written. */
  bytes = 0;
  #since = 0;

  /**
   * @param table of no other batch until this one is sealed
   * @param record counts calls in the metrics, and gives what counts their times
   */
  constructor(table: CallTable, record: Recorder['recordSums'], form: CallForm = 'pages') {
    this.#table = table;
    this.#record = record;
    this.#form = form;
  }

  /** How many calls it holds. */
  get records(): number {
    return this.#records;
  }

  /** Sums of those that are counted. */
  get sums(): number {
    return this.#sums.size;
  }

  /** Unix milliseconds: when the first of them ended. */
  get since(): number {
    return this.#since;
  }

  /**
   * Takes a call, of which the table keeps what it says.
   * @param at whole Unix milliseconds: when it ended
   * @returns false when the call has no time that a calendar has, and cannot be taken
   */
  add(call: CallRecord, at: number): boolean {
    const table = this.#table;
    if (!table.hasRoom(at)) {
      if (!isTime(at)) return false;
      this.#endPage();
      table.begin(at);
    }
    table.add(call, at);
    if (table.uncounted >= mostUncounted) table.count(this.#countGroup);
    if (this.#records++ === 0) this.#since = at;
    return true;
  }

  /** Has those calls counted that are not yet. */
  count(): void {
    this.#table.count(this.#countGroup);
  }

  /** Writes what is left, and has it counted; nothing is added from then on. */
  seal(): SealedBatch {
    this.#endPage();
    const sums = this.#sums.sums();
    let bytes = this.bytes + sums.values.length * Float64Array.BYTES_PER_ELEMENT;
    for (const id of sums.ids) bytes += id.length;
    return {
      records: this.#records,
      since: this.#since,
      bytes,
      lines: this.#lines,
      calls: this.#calls,
      sums,
      onSettled: [],
    };
  }

  readonly #countGroup = (sums: CallGroupSums): CallTimes => {
    this.#sums.add(this.#table.at, sums);
    return this.#record(countedOf(sums), sums.calls);
  };

  #endPage(): void {
    const table = this.#table;
    if (table.length === 0) return;
    table.count(this.#countGroup);
    if (this.#form === 'rows') {
      const text = writeRows(table);
      this.bytes += text.length;
      this.#calls.push({ at: table.at, text });
    } else {
      const value = writePage(table);
      this.bytes += value.length;
      this.#lines.push({ at: table.at, value });
    }
    table.end();
  }
}

/** As they are counted in the metrics. Without spreads, which took ten times as long where each call has another key. */
function countedOf(sums: CallGroupSums): CountedCalls {
  const { keyId, protocol, model, status, outcome, tokensKnown } = sums.group;
  return {
    keyId,
    protocol,
    model,
    status,
    outcome,
    bytesIn: sums.bytesIn,
    bytesOut: sums.bytesOut,
    costNanoUsd: sums.costNanoUsd,
    usage: tokensKnown === 'none' ? null : tokensOf(sums),
  };
}

function tokensOf(sums: CallGroupSums): TokenCounts {
  return {
    input: sums.inputTokens,
    output: sums.outputTokens,
    cached: sums.cachedTokens,
    reasoning: sums.reasoningTokens,
  };
}
