import type { Services } from '../../../src/flow/services.js';
import { changeTask } from '../../../src/flow/video/settle.js';
import { uncounted } from '../../../src/metrics/recorder.js';
import type { WholeStore } from '../../../src/store/store.js';
import { appendOnce } from '../../../src/usage/writer.js';
import { failedTask } from '../../../src/video/advance.js';
import { TaskBook } from '../../../src/video/book.js';
import { sampleTask } from '../../video/samples.js';

const dayMs = 24 * 60 * 60 * 1000;

/** What each of the tasks was charged, and the budget that paid for it, in nano-dollars. */
export const charged = 200;
export const pool = 'a-budget';
const limit = 10_000;

/** What settling a task needs of a store. */
export type Settling = Pick<Services, 'book' | 'budgets' | 'correct'>;

export function settlingWith(store: WholeStore): Settling {
  return {
    book: new TaskBook(store),
    budgets: store.accounts,
    async correct(call) {
      const retention = { lineMs: dayMs, sumMs: dayMs };
      const calls = [{ call, at: Date.now() }];
      await appendOnce(store, `correction ${call.id}`, { calls, record: uncounted, retention });
    },
  };
}

/** @returns it as the services of a gateway */
export function servicesOf(settling: Settling): Services {
  const running = { snapshot: { usage: { ledger: true } } };
  return { ...settling, running, reportFault: () => {} } as unknown as Services;
}

/** Creates a task that was paid for, and makes it fail. */
export async function endTask(store: WholeStore, settling: Settling, id: string): Promise<void> {
  const now = Date.now();
  const charge = {
    nanoUsd: charged,
    paidNanoUsd: null,
    seconds: 8,
    videos: 1,
    budgets: [{ pool, limit }],
  };
  const task = sampleTask({ id, state: 'queued', createdAt: now, expiresAt: now + dayMs, charge });
  const asked = { limit, least: 0, want: 0, owed: charged, debt: null, ttlMs: dayMs };
  await store.accounts.reserve(pool, asked);
  await store.create('tasks', id, JSON.stringify(task), dayMs);
  const booked = await settling.book.find(id);
  if (booked === null) throw new Error('the task is gone');
  await changeTask(servicesOf(settling), booked, (known) =>
    failedTask(known, { code: 'c', message: 'no' }, now),
  );
}
