import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { UsageSettings } from '../config/types.js';
import type { Recorder } from '../metrics/recorder.js';
import type { Ledger } from '../store/store.js';
import { dayMs } from './budget.js';
import { type UsageRetention, UsageWriter } from './writer.js';

/** What was lost is logged at most once in so many milliseconds. */
const tellEveryMs = 10_000;

interface LedgerOptions {
  readonly store: Pick<Ledger, 'append' | 'calls'>;
  /** What holds now. */
  settings(): UsageSettings;
  readonly recorder: Pick<Recorder, 'recordSums' | 'count'>;
  readonly log: Logger;
}

/** Makes a worker's writer of the usage ledger. That the store takes nothing is counted, and logged as it begins and ends. */
export function createLedger({ store, settings, recorder, log }: LedgerOptions): UsageWriter {
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
      log.warn({ err: error, waiting }, 'the store does not take the usage of calls, it waits');
    },
    onTaken(waiting) {
      if (!isFailing) return;
      isFailing = false;
      log.info({ waiting }, 'the store takes the usage of calls again');
    },
    onDropped(records) {
      recorder.count('gateway_ledger_dropped_total', records);
      untold += records;
      const now = performance.now();
      if (now - dropTold < tellEveryMs) return;
      dropTold = now;
      log.error({ entries: untold }, 'the usage of calls was lost');
      untold = 0;
    },
  });
}

/** How long usage is kept by the config. */
export function retentionOf({ lineDays, sumDays }: UsageSettings): UsageRetention {
  return { lineMs: lineDays * dayMs, sumMs: sumDays * dayMs };
}
