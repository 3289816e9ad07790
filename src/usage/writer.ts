import { randomUUID } from 'node:crypto';
import { GatewayError } from '../errors.js';
import type { CallTimes } from '../metrics/call-times.js';
import type { CallSums } from '../metrics/recorder.js';
import type { Ledger, LedgerBatch } from '../store/store.js';
import { UsageBatch, type UsageBatchContent } from './batch.js';
import { CallTable } from './call-table.js';
import type { EndedCall } from './ended-call.js';
import { usageLedger } from './sums.js';

/** How long usage is kept, in milliseconds. */
export interface UsageRetention {
  readonly lineMs: number;
  readonly sumMs: number;
}

export interface UsageWriterOptions {
  readonly store: Pick<Ledger, 'append'>;
  /** What holds now; asked for each batch. */
  retention(): UsageRetention;
  /** Counts calls in the metrics, once, many at once and a while later. @returns what counts their times */
  record(sums: CallSums): CallTimes;
  /**
   * Told how many entries were given up: there were too many while the store failed, the writer has ended, or they
   * cannot be written.
   */
  onDropped(entries: number): void;
  /** Told each time that the store did not take a batch, with the number of entries that wait. */
  onFailure(error: unknown, waiting: number): void;
  /** Longest wait of an entry while the store takes all; 500 ms unless said otherwise. */
  readonly flushMs?: number;
  /** Entries of one batch; 10,000 unless said otherwise. */
  readonly batchEntries?: number;
  /** Entries that wait beside the batch under way, while the store fails; 100,000 unless said otherwise. */
  readonly mostWaiting?: number;
  /** Pause after the first failure, doubled after each one up to 5 s; 100 ms unless said otherwise. */
  readonly pauseMs?: number;
}

/** Writes the usage of a worker to the ledger, in batches and behind the calls' backs. */
export interface UsageWriter {
  /**
   * Takes note of a call, of which nothing but words and numbers is kept until they are stored.
   * @param at whole Unix milliseconds: when it ended
   * @returns false for one that is given up, and not counted either
   */
  add(call: EndedCall, at: number, costNanoUsd: number): boolean;
  /** Has all calls counted that were added: the metrics are about to be read. */
  count(): void;
  /** Entries that are not in the ledger yet. */
  waiting(): number;
  /** Resolves when what was added before is in the ledger, or was given up; never rejects. */
  flush(): Promise<void>;
  /**
   * Writes what there is, but gives it up after `withinMs`. Resolves when it is done, and never rejects; entries that
   * are added from then on are given up.
   */
  close(withinMs: number): Promise<void>;
}

const defaultFlushMs = 500;
const defaultBatchEntries = 10_000;
const defaultMostWaiting = 100_000;
const firstPauseMs = 100;
const longestPauseMs = 5000;

/** A batch that takes no more, and whoever waits for it. */
interface Chunk {
  readonly entries: number;
  readonly content: UsageBatchContent;
  readonly settled: (() => void)[];
}

/** Makes the writer of a worker; it does nothing before the first entry. */
export function createUsageWriter(options: UsageWriterOptions): UsageWriter {
  const { store, onDropped, onFailure } = options;
  const flushMs = options.flushMs ?? defaultFlushMs;
  const batchEntries = options.batchEntries ?? defaultBatchEntries;
  const mostWaiting = options.mostWaiting ?? defaultMostWaiting;
  const pauses = createPauses(options.pauseMs ?? firstPauseMs);
  const writer = randomUUID();
  /** The oldest first. */
  const full: Chunk[] = [];
  const table = new CallTable();
  let filling = new UsageBatch(table, options.record);
  let current: Chunk | null = null;
  /** Entries of all chunks but the current one. */
  let count = 0;
  let lastNumber = 0;
  let running = false;
  let timer: NodeJS.Timeout | null = null;
  /** What is being filled has waited long enough. */
  let isDue = false;
  let closing: Promise<void> | null = null;
  let ended = false;

  const seal = (): void => {
    isDue = false;
    if (filling.entries === 0) return;
    full.push({ entries: filling.entries, content: filling.end(), settled: [] });
    filling = new UsageBatch(table, options.record);
  };

  const settle = (chunk: Chunk, dropped: number): void => {
    if (dropped > 0) onDropped(dropped);
    for (const settled of chunk.settled) settled();
  };

  const dropOldest = (): void => {
    const oldest = full.shift();
    if (oldest === undefined) return;
    count -= oldest.entries;
    settle(oldest, oldest.entries);
  };

  /** @returns false when the batch is given up */
  const append = async (batch: LedgerBatch): Promise<boolean> => {
    for (let attempt = 0; !ended; attempt++) {
      try {
        await store.append(usageLedger, batch);
        return true;
      } catch (error) {
        onFailure(error, count + (current?.entries ?? 0));
        // What the store does not take for what it is, it will not take later.
        if (!(error instanceof GatewayError)) return false;
        if (!ended) await pauses.pause(attempt);
      }
    }
    return false;
  };

  /** Nothing is sealed while a batch is under way, or a slow store would get many small ones. */
  const nextChunk = (): Chunk | undefined => {
    if (full.length === 0 && isDue) seal();
    return full.shift();
  };

  const run = async (): Promise<void> => {
    running = true;
    for (let chunk = nextChunk(); chunk !== undefined; chunk = nextChunk()) {
      current = chunk;
      count -= chunk.entries;
      lastNumber++;
      const number = lastNumber;
      const { lines, sums } = chunk.content;
      const { lineMs, sumMs } = options.retention();
      const kept = sums.map((sum) => ({ ...sum, ttlMs: sumMs }));
      const taken = await append({ writer, number, lines, lineTtlMs: lineMs, sums: kept });
      current = null;
      settle(chunk, taken ? 0 : chunk.entries);
    }
    running = false;
  };

  const start = (): void => {
    if (!running) void run();
  };

  const due = (): void => {
    timer = null;
    isDue = true;
    start();
  };

  const flush = (): Promise<void> => {
    seal();
    const last = full.at(-1) ?? current;
    if (last === null) return Promise.resolve();
    const done = new Promise<void>((resolve) => last.settled.push(resolve));
    start();
    pauses.end();
    return done;
  };

  const end = (): void => {
    ended = true;
    pauses.end();
    seal();
    while (full.length > 0) dropOldest();
  };

  return {
    add(call, at, costNanoUsd) {
      if (closing !== null || !filling.add(call, at, costNanoUsd)) {
        onDropped(1);
        return false;
      }
      count++;
      if (filling.entries >= batchEntries) {
        seal();
        start();
      }
      while (count > mostWaiting && full.length > 0) dropOldest();
      timer ??= setTimeout(due, flushMs).unref();
      return true;
    },
    count: () => filling.count(),
    waiting: () => count + (current?.entries ?? 0),
    flush,
    close(withinMs) {
      closing ??= new Promise((resolve) => {
        if (timer !== null) clearTimeout(timer);
        const deadline = setTimeout(() => {
          end();
          // What was waiting for its next attempt is told to be given up before that.
          setImmediate(resolve);
        }, withinMs);
        void flush().then(() => {
          clearTimeout(deadline);
          end();
          resolve();
        });
      });
      return closing;
    },
  };
}

/** Pauses between attempts, of which there is one at a time. */
function createPauses(firstMs: number) {
  let resume: (() => void) | null = null;
  return {
    /** Longer with each attempt, and not the same for all workers. */
    pause: (attempt: number): Promise<void> =>
      new Promise((resolve) => {
        const longest = Math.min(firstMs * 2 ** Math.min(attempt, 16), longestPauseMs);
        const timer = setTimeout(() => resume?.(), longest * (0.5 + Math.random() / 2)).unref();
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
