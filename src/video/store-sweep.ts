import type { Logger } from 'pino';
import type { StoreSettings } from '../config/types.js';
import { GatewayError } from '../errors.js';
import { mayHoldAnything } from '../store/create.js';
import type { Store } from '../store/store.js';
import { endInterrupted, type TaskBook } from './book.js';

const firstMs = 1000;
const leftEveryMs = 1000;
const owedEveryMs = 5000;
const intervalMs = 60_000;
/** Shorter than `intervalMs`, so that clock drift skips no sweep. */
const claimMs = 50_000;
const tasksOfPage = 100;

interface StoreSweepOptions {
  readonly settings: StoreSettings;
  readonly store: Store;
  readonly book: TaskBook;
  readonly log: Logger;
  /** Corrects the charge of an ended task. */
  settle(taskId: string): Promise<void>;
}

/**
 * Sweeps the store, soon after the start and then once a minute: ends and logs submissions that a crash cut off, each
 * once across all processes that share the store, one of which also removes expired records. Every five seconds, settles
 * ended tasks that were not. Every second, retries what this process could not record.
 */
export function startStoreSweep(options: StoreSweepOptions): { stop(): void } {
  const { log } = options;
  let isStopped = false;
  /** Wraps work so that only one run is in flight. A failure is logged, and again only after a run has succeeded. */
  const once = (begin: () => Promise<void>, failure: string) => {
    let isUnderWay = false;
    let isTold = false;
    return async (): Promise<void> => {
      if (isUnderWay) return;
      isUnderWay = true;
      try {
        await begin();
        isTold = false;
      } catch (error) {
        if (!isTold && !isStopped) log.warn({ err: error }, failure);
        isTold = true;
      } finally {
        isUnderWay = false;
      }
    };
  };
  const sweep = once(() => sweepStore(options), 'upkeep of the store failed');
  const catchUp = once(() => options.book.catchUp(), 'what was not noted of tasks could not be');
  const settle = once(async () => {
    try {
      await settleOwed(options);
    } catch (error) {
      // The store is unavailable, which its other users report.
      if (!(error instanceof GatewayError)) throw error;
    }
  }, 'what tasks were charged could not be put right');
  const first = setTimeout(() => {
    void sweep();
    void settle();
  }, firstMs);
  const timers = [
    setInterval(() => void sweep(), intervalMs),
    setInterval(() => void catchUp(), leftEveryMs),
    setInterval(() => void settle(), owedEveryMs),
  ];
  for (const timer of [first, ...timers]) timer.unref();
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(first);
      for (const timer of timers) clearInterval(timer);
    },
  };
}

async function sweepStore({ settings, store, book, log }: StoreSweepOptions): Promise<void> {
  if (!mayHoldAnything(settings)) return;
  for (const { submission, task } of await endInterrupted(book)) {
    log.error(
      {
        task: submission.taskId,
        upstream: task.upstream.name,
        submittedAt: new Date(submission.at).toISOString(),
      },
      'a video task was being submitted when its process ended: whether the upstream has made it is not known',
    );
  }
  if (await store.claim('upkeep', claimMs)) await store.sweep();
}

/**
 * Settles ended tasks whose process was killed before it settled them, or missed the confirmation of the end it wrote. A
 * task that cannot be settled, such as when its budget's account is unreadable, does not delay the others.
 */
async function settleOwed({ settings, book, settle }: StoreSweepOptions): Promise<void> {
  if (!mayHoldAnything(settings)) return;
  const faults: unknown[] = [];
  let from: string | null = null;
  do {
    const page = await book.owed(tasksOfPage, from);
    for (const id of page.ids) {
      try {
        await settle(id);
      } catch (fault) {
        if (!(fault instanceof GatewayError) && faults.length === 0) faults.push(fault);
      }
    }
    from = page.next;
  } while (from !== null);
  if (faults.length > 0) throw faults[0];
}
