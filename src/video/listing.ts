import type { Store } from '../store/store.js';
import { readTask, taskCollection } from './book.js';
import type { VideoTask } from './task.js';

interface TaskPage {
  readonly tasks: readonly VideoTask[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

/**
 * Lists the tasks of all keys, those that are kept longest first: the newest ones first, as long as tasks are kept for
 * the same number of days. Records that are damaged or of another version are passed over, so a page may hold fewer
 * tasks than were asked for: `next` alone tells the end.
 * @param limit of tasks on the page
 * @param from `next` of the page before; null for the first one
 * @throws what the store throws
 */
export async function listTasks(
  store: Pick<Store, 'list'>,
  limit: number,
  from: string | null,
): Promise<TaskPage> {
  const { records, next } = await store.list(taskCollection, limit, from, 'last-to-go');
  return { tasks: records.flatMap(({ value }) => readTask(value) ?? []), next };
}
