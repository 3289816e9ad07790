import type { Logger } from 'pino';
import type { StoreSettings } from '../config/types.js';
import { mayHoldAnything } from '../store/create.js';
import type { Store } from '../store/store.js';
import type { TaskBook } from './book.js';
import { endInterrupted } from './recovery.js';

const firstMs = 1000;
const leftEveryMs = 1000;
const everyMs = 60_000;
/** Shorter than `everyMs`, so that clocks that drift leave no sweep out. */
const claimMs = 50_000;

export interface StoreSweepOptions {
  readonly settings: StoreSettings;
  readonly store: Store;
  readonly book: TaskBook;
  readonly log: Logger;
}

/**
 * Sweeps the store, soon after the start and then once a minute: submissions that a crash has cut off are ended
 * and told in the log, once over all processes that share the store, and one of these removes what has expired. What
 * this process could not note is tried again every second.
 */
export function startStoreSweep(options: StoreSweepOptions): { stop(): void } {
  const { log } = options;
  const sweep = (): void => {
    sweepStore(options).catch((error: unknown) => log.warn({ err: error }, 'upkeep of the store failed'));
  };
  let catchingUp = false;
  const catchUp = async (): Promise<void> => {
    if (catchingUp) return;
    catchingUp = true;
    try {
      await options.book.catchUp();
    } catch (error) {
      log.warn({ err: error }, 'what was not noted of tasks could not be');
    } finally {
      catchingUp = false;
    }
  };
  const first = setTimeout(sweep, firstMs);
  const timers = [setInterval(sweep, everyMs), setInterval(() => void catchUp(), leftEveryMs)];
  for (const timer of [first, ...timers]) timer.unref();
  return {
    stop: () => {
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
