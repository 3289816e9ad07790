import type { Logger } from 'pino';
import type { StoreSettings } from '../config/types.js';
import { GatewayError } from '../errors.js';
import { mayHoldAnything } from '../store/create.js';
import type { Store } from '../store/store.js';
import type { TaskBook } from './book.js';
import { endInterrupted } from './recovery.js';

const firstMs = 1000;
const leftEveryMs = 1000;
const owedEveryMs = 5000;
const everyMs = 60_000;
/** Shorter than `everyMs`, so that clocks that drift leave no sweep out. */
const claimMs = 50_000;
const tasksOfPage = 100;

interface StoreSweepOptions {
  readonly settings: StoreSettings;
  readonly store: Store;
  readonly book: TaskBook;
  readonly log: Logger;
  /** Puts right what a task was charged that has ended. */
  settle(taskId: string): Promise<void>;
}

/**
 * Sweeps the store, soon after the start and then once a minute: submissions that a crash has cut off are ended
 * and told in the log, once over all processes that share the store, and one of these removes what has expired. Every five
 * seconds, tasks are settled that have ended and were not. What this process could not note is tried again every second.
 */
export function startStoreSweep(options: StoreSweepOptions): { stop(): void } {
  const { log } = options;
  let isStopped = false;
  /** What `begin` begins is under way once at a time. That it fails is told in the log, once until it is done again. */
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
      // The store is gone, as its other users tell.
      if (!(error instanceof GatewayError)) throw error;
    }
  }, 'what tasks were charged could not be put right');
  const first = setTimeout(() => {
    void sweep();
    void settle();
  }, firstMs);
  const timers = [
    setInterval(() => void sweep(), everyMs),
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
 * What was killed between the end of a task and its settlement, or has not heard of the end it wrote, is made up for. One
 * that cannot be settled, as when the account of its budget cannot be read, holds up no other.
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
