import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { UsageSettings } from '../config/types.js';
import { GatewayError } from '../errors.js';
import type { CallRecord } from '../metrics/call-record.js';
import type { CountedCalls, Recorder, TokenCounts } from '../metrics/recorder.js';
import {
  backOffBefore,
  type CallRows,
  type Ledger,
  type LedgerBatch,
  type NewLedgerLine,
} from '../store/store.js';
import { BatchMemory, bytesOf } from './batch-memory.js';
import { dayMs } from './budget.js';
import { writeRows } from './call-rows.js';
import { type CallGroup, type CountGroup, callsSum, column } from './call-table.js';
import { isTime } from './ledger-record.js';
import { writePage } from './page.js';
import { type SumCollector, usageLedger } from './sums.js';

/** How long usage is kept. */
export interface UsageRetention {
  readonly lineMs: number;
  readonly sumMs: number;
}

interface UsageWriterOptions {
  readonly store: Pick<Ledger, 'append' | 'calls'>;
  /** Returns the retention now in force; called for each batch. */
  retention(): UsageRetention;
  /** Counts calls in the metrics, each once, in groups and with a delay. @returns a counter of their times */
  readonly record: Recorder['recordSums'];
  /**
   * Called with the number of records dropped: too many waited while the store failed, the writer has ended, or they
   * cannot be written.
   */
  onDropped(records: number): void;
  /** Called each time the store rejects a batch, with the number of waiting records. */
  onFailure(error: unknown, waiting: number): void;
  /** Called for each batch that the store accepts, with the number of records still waiting. */
  onTaken(waiting: number): void;
}

/** Bounds of what a writer holds, and of how long. */
export interface WriterBounds {
  /** Longest wait of a record while the store accepts batches. */
  readonly flushMs: number;
  /** Records of one batch. */
  readonly batchRecords: number;
  /** A batch ends with the first page, or part of one, that reaches this many sums. */
  readonly batchSums: number;
  /** Most records that wait besides the batch in flight, while the store fails. */
  readonly mostWaiting: number;
  /** Most bytes of memory for these. */
  readonly mostWaitingBytes: number;
  /** Back-off after the first failure, doubled after each further one up to `longestBackOffMs`. */
  readonly backOffMs: number;
}

const usualBounds: WriterBounds = {
  flushMs: 500,
  batchRecords: 10_000,
  // Calls of many keys have many sums, and handing over a batch must block a worker only briefly.
  batchSums: 1000,
  mostWaiting: 100_000,
  mostWaitingBytes: 64 * 1024 * 1024,
  backOffMs: 100,
};
/** After an outage, when all hosts have many records to write, each batch still fits the timeout of a store call. */
const boundsOfRows: WriterBounds = { ...usualBounds, batchRecords: 2000 };
const longestBackOffMs = 5000;
/** The longest while closing: what the store does not accept by then is lost. */
const closingBackOffMs = 200;

/** A batch that accepts no more calls: their pages, in the form of its store, and their sums. */
interface SealedBatch {
  readonly records: number;
  /** Unix milliseconds: end of its first call. */
  readonly since: number;
  /** Size in memory. */
  readonly bytes: number;
  readonly lines: readonly NewLedgerLine[];
  readonly calls: readonly CallRows[];
  readonly sums: ReturnType<SumCollector['take']>;
  /** Called when it was stored or dropped. */
  readonly onDone: (() => void)[];
}

/** Writes the usage of a worker to the ledger, in batches, after the calls have ended. */
export class UsageWriter {
  readonly #options: UsageWriterOptions;
  readonly #form: CallForm;
  readonly #bounds: WriterBounds;
  readonly #backOff: ReturnType<typeof createBackOff>;
  readonly #writer = randomUUID();
  /** Batches that wait, oldest first. */
  readonly #sealed: SealedBatch[] = [];
  readonly #memory = new BatchMemory();
  #open: OpenBatch;
  /** The batch in flight to the store. */
  #current: SealedBatch | null = null;
  /** Records of all batches except that one. */
  #count = 0;
  /** Bytes of the sealed batches that wait. */
  #bytes = 0;
  #lastNumber = 0;
  #isRunning = false;
  #timer: NodeJS.Timeout | null = null;
  /** Whether the open batch has waited for `flushMs`. */
  #isDue = false;
  #closing: Promise<void> | null = null;
  #onClosed: () => void = () => {};
  /** Ends the waiting for the store at that time of `performance.now()`. */
  #deadline: NodeJS.Timeout | null = null;
  #closeUntil = Number.POSITIVE_INFINITY;
  #hasEnded = false;

  constructor(options: UsageWriterOptions, bounds: Partial<WriterBounds> = {}) {
    this.#options = options;
    this.#form = formOf(options.store);
    this.#bounds = { ...(this.#form === 'rows' ? boundsOfRows : usualBounds), ...bounds };
    this.#backOff = createBackOff(this.#bounds.backOffMs);
    this.#open = new OpenBatch(this.#memory, options.record, this.#form);
  }

  /**
   * Records a call. Only its texts and numbers are held until they are stored, not the call itself.
   * @param at end of the call in whole Unix milliseconds
   * @returns false if the call was dropped, in which case it is not counted either
   */
  add(call: CallRecord, at: number): boolean {
    if (this.#closing !== null || !this.#open.add(call, at)) {
      this.#options.onDropped(1);
      return false;
    }
    this.#count++;
    const { flushMs, batchRecords, batchSums } = this.#bounds;
    if (this.#open.records >= batchRecords || this.#open.sums >= batchSums) {
      this.#seal();
      this.#start();
    }
    while (this.#isTooMuch && this.#sealed.length > 0) this.#dropOldest();
    this.#timer ??= setTimeout(() => this.#onDue(), flushMs).unref();
    return true;
  }

  get #isTooMuch(): boolean {
    const { mostWaiting, mostWaitingBytes } = this.#bounds;
    return this.#count > mostWaiting || this.#bytes > mostWaitingBytes;
  }

  /** Counts all calls added so far. Called before the metrics are read. */
  count(): void {
    this.#open.count();
  }

  /** The number of records not yet in the ledger. */
  waiting(): number {
    return this.#count + (this.#current?.records ?? 0);
  }

  /** Milliseconds that the oldest of these has waited; 0 without any. @param now Unix milliseconds */
  lagMs(now: number): number {
    const oldest = this.#current ?? this.#sealed[0] ?? this.#open;
    return oldest.records === 0 ? 0 : Math.max(0, now - oldest.since);
  }

  /** Bytes of memory that they occupy, without those of the last second. */
  waitingBytes(): number {
    return this.#bytes + this.#open.bytes + (this.#current?.bytes ?? 0);
  }

  /** Resolves when all records added before are in the ledger or were dropped; never rejects. */
  flush(): Promise<void> {
    this.#seal();
    const last = this.#sealed.at(-1) ?? this.#current;
    if (last === null) return Promise.resolve();
    const done = new Promise<void>((resolve) => last.onDone.push(resolve));
    this.#start();
    this.#backOff.end();
    return done;
  }

  /**
   * Writes the waiting records, and drops those not written within `withinMs`. Records added after the call are dropped.
   * Resolves when done; never rejects. A second call may shorten the time.
   */
  close(withinMs: number): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#onClosed = resolve;
      if (this.#timer !== null) clearTimeout(this.#timer);
      void this.flush().then(() => {
        this.#end();
        resolve();
      });
    });
    const until = performance.now() + withinMs;
    if (!this.#hasEnded && until < this.#closeUntil) {
      this.#closeUntil = until;
      if (this.#deadline !== null) clearTimeout(this.#deadline);
      this.#deadline = setTimeout(() => {
        this.#end();
        // A batch in back-off first reports its records as dropped.
        setImmediate(this.#onClosed);
      }, withinMs);
    }
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
      this.#finish(batch, isTaken ? 0 : batch.records);
    }
    this.#isRunning = false;
  }

  /** Seals the open batch only when none is in flight, so that a slow store does not get many small batches. */
  #nextBatch(): SealedBatch | undefined {
    if (this.#sealed.length === 0 && this.#isDue) this.#seal();
    return this.#sealed.shift();
  }

  /** @returns false when the batch is dropped */
  async #append(batch: LedgerBatch): Promise<boolean> {
    for (let attempt = 0; !this.#hasEnded; attempt++) {
      try {
        await this.#options.store.append(usageLedger, batch, attempt);
        this.#options.onTaken(this.#count);
        return true;
      } catch (error) {
        this.#options.onFailure(error, this.waiting());
        // Any error other than unavailability is permanent.
        if (!(error instanceof GatewayError)) return false;
        if (this.#hasEnded) break;
        await this.#backOff.wait(attempt, this.#closing === null ? longestBackOffMs : closingBackOffMs);
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
    this.#open = new OpenBatch(this.#memory, this.#options.record, this.#form);
  }

  #finish({ lines, onDone }: SealedBatch, dropped: number): void {
    for (const { value } of lines) if (typeof value !== 'string') this.#memory.free(value);
    if (dropped > 0) this.#options.onDropped(dropped);
    for (const tell of onDone) tell();
  }

  #dropOldest(): void {
    const oldest = this.#sealed.shift();
    if (oldest === undefined) return;
    this.#count -= oldest.records;
    this.#bytes -= oldest.bytes;
    this.#finish(oldest, oldest.records);
  }

  #end(): void {
    this.#hasEnded = true;
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#backOff.end();
    this.#seal();
    while (this.#sealed.length > 0) this.#dropOldest();
  }
}

/** Minimum interval between log lines about dropped records. */
const logIntervalMs = 10_000;

interface LoggedWriterOptions {
  readonly store: Pick<Ledger, 'append' | 'calls'>;
  /** Returns the settings now in force. */
  settings(): UsageSettings;
  readonly recorder: Pick<Recorder, 'recordSums' | 'count'>;
  readonly log: Logger;
}

/** Creates a worker's usage writer. Failures of the store are counted, and logged when they begin and when they end. */
export function createUsageWriter({ store, settings, recorder, log }: LoggedWriterOptions): UsageWriter {
  let isFailing = false;
  let dropLoggedAt = Number.NEGATIVE_INFINITY;
  let droppedSinceLog = 0;
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
      droppedSinceLog += records;
      const now = performance.now();
      if (now - dropLoggedAt < logIntervalMs) return;
      dropLoggedAt = now;
      log.error({ entries: droppedSinceLog }, 'ledger entries were lost');
      droppedSinceLog = 0;
    },
  });
}

/** The retention that the config sets. */
export function retentionOf({ lineDays, sumDays }: UsageSettings): UsageRetention {
  return { lineMs: lineDays * dayMs, sumMs: sumDays * dayMs };
}

/** Creates the back-off between attempts; one wait at a time. */
function createBackOff(firstMs: number) {
  let resume: (() => void) | null = null;
  return {
    /** Longer with each attempt, with jitter. */
    wait: (attempt: number, longestMs: number): Promise<void> =>
      new Promise((resolve) => {
        const timer = setTimeout(() => resume?.(), backOffBefore(attempt, firstMs, longestMs)).unref();
        resume = () => {
          clearTimeout(timer);
          resume = null;
          resolve();
        };
      }),
    /** Ends the current wait. */
    end: (): void => resume?.(),
  };
}

/** The form in which calls go to the ledger: packed, one line per page, or one by one, as the rows of each page. */
type CallForm = 'pages' | 'rows';

/** @returns the form in which a store accepts calls */
function formOf({ calls }: Pick<Ledger, 'calls'>): CallForm {
  return calls === null ? 'pages' : 'rows';
}

/** Converts a batch to the ledger's form. */
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
 * Appends calls under a name of their own; calls appended again under that name within a week are ignored. The `at` of a
 * call is its end in whole Unix milliseconds; a call without a valid one is left out.
 * @returns false when they were ignored
 * @throws {GatewayError} the store's error; whether the calls were appended is then unknown
 */
export function appendOnce(
  store: Pick<Ledger, 'append' | 'calls'>,
  name: string,
  appended: {
    readonly calls: readonly { readonly call: CallRecord; readonly at: number }[];
    readonly record: Recorder['recordSums'];
    readonly retention: UsageRetention;
  },
): Promise<boolean> {
  const batch = new OpenBatch(new BatchMemory(), appended.record, formOf(store));
  for (const { call, at } of appended.calls) batch.add(call, at);
  return store.append(usageLedger, ledgerBatchOf(batch.seal(), name, 1, appended.retention));
}

/** Calls are counted at the latest at this number: with a key each, a few hundred take a millisecond. */
const maxUncounted = 125;

/**
 * Collects ended calls that go to the ledger together. Each page is serialized when it is full, so that only bytes are
 * held for waiting calls.
 */
export class OpenBatch {
  readonly #lines: NewLedgerLine[] = [];
  readonly #calls: CallRows[] = [];
  readonly #form: CallForm;
  readonly #memory: BatchMemory;
  readonly #record: Recorder['recordSums'];
  #records = 0;
  /** Bytes of the serialized pages. */
  bytes = 0;
  #since = 0;

  /**
   * @param memory used by this batch alone until it is sealed
   * @param record counts calls in the metrics, and returns a counter of their times
   */
  constructor(memory: BatchMemory, record: Recorder['recordSums'], form: CallForm) {
    this.#memory = memory;
    this.#record = record;
    this.#form = form;
  }

  /** The number of its calls. */
  get records(): number {
    return this.#records;
  }

  /** The number of sums of the counted calls. */
  get sums(): number {
    return this.#memory.sums.size;
  }

  /** Unix milliseconds: end of the first call. */
  get since(): number {
    return this.#since;
  }

  /**
   * Adds a call, whose texts and numbers the table copies.
   * @param at end of the call in whole Unix milliseconds
   * @returns false if that is not a valid time; the call is then not added
   */
  add(call: CallRecord, at: number): boolean {
    const { table } = this.#memory;
    if (!table.hasRoom(at)) {
      if (!isTime(at)) return false;
      this.#endPage();
      table.begin(at);
    }
    table.add(call, at);
    if (table.uncounted >= maxUncounted) table.count(this.#countGroup);
    if (this.#records++ === 0) this.#since = at;
    return true;
  }

  /** Counts the calls that are not counted yet. */
  count(): void {
    this.#memory.table.count(this.#countGroup);
  }

  /** Serializes and counts the remaining calls. Nothing may be added afterwards. */
  seal(): SealedBatch {
    this.#endPage();
    const sums = this.#memory.sums.take();
    let bytes = this.bytes + sums.values.length * Float64Array.BYTES_PER_ELEMENT;
    for (const id of sums.ids) bytes += id.length;
    return {
      records: this.#records,
      since: this.#since,
      bytes,
      lines: this.#lines,
      calls: this.#calls,
      sums,
      onDone: [],
    };
  }

  readonly #countGroup: CountGroup = (group, sums, start) => {
    this.#memory.sums.add(this.#memory.table.at, group, sums, start);
    return this.#record(countedOf(group, sums, start), sums[start + callsSum] as number);
  };

  #endPage(): void {
    const { table } = this.#memory;
    if (table.length === 0) return;
    table.count(this.#countGroup);
    if (this.#form === 'rows') {
      const text = writeRows(table);
      this.bytes += text.length;
      this.#calls.push({ at: table.at, text });
    } else {
      const value = this.#memory.write(writePage(table));
      this.bytes += bytesOf(value);
      this.#lines.push({ at: table.at, value });
    }
    table.end();
  }
}

/** Sums in the form that the metrics count. No object spreads: they took ten times as long with a key per call. */
function countedOf(group: CallGroup, sums: Float64Array, start: number): CountedCalls {
  const { keyId, protocol, model, status, outcome, tokensKnown } = group;
  return {
    keyId,
    protocol,
    model,
    status,
    outcome,
    bytesIn: sums[start + column.bytesIn] as number,
    bytesOut: sums[start + column.bytesOut] as number,
    costNanoUsd: sums[start + column.costNanoUsd] as number,
    usage: tokensKnown === 'none' ? null : tokensOf(sums, start),
  };
}

function tokensOf(sums: Float64Array, start: number): TokenCounts {
  return {
    input: sums[start + column.inputTokens] as number,
    output: sums[start + column.outputTokens] as number,
    cached: sums[start + column.cachedTokens] as number,
    reasoning: sums[start + column.reasoningTokens] as number,
  };
}
