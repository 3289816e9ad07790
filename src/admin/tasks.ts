import { targetLabel } from '../metrics/gauges.js';
import type { Store } from '../store/store.js';
import type { VideoTask } from '../video/task.js';
import { dateTime, json, readLimit, wrongCursor } from './answer.js';
import { type AdminRoute, route } from './routes.js';
import { checkNames } from './usage-query.js';

/** Where tasks are read. */
export type TaskStore = Pick<Store, 'list'>;

const usualPage = 50;
const longestPage = 200;
/** Stands before a place in the store, to tell it from any other text. */
const cursorMark = 'tasks:';

/**
 * `GET /tasks`, the video tasks of all keys: the newest first, as long as `store.taskDays` stays the same, for the
 * store has them in the order in which they expire.
 */
export function taskRoutes(store: TaskStore): readonly AdminRoute[] {
  return [
    route('GET', '/tasks', async ({ query }) => {
      checkNames(query, ['limit', 'cursor']);
      const limit = readLimit(query, usualPage, longestPage);
      const from = readCursor(query.get('cursor'));
      // Loaded only here: the check of a record brings the compiler of schemas with it.
      const { listTasks } = await import('../video/book.js');
      const page = await listTasks(store, limit, from);
      return json({ tasks: page.tasks.map(taskView), next: writeCursor(page.next) });
    }),
  ];
}

/** A task as operators see it: nothing of what was asked for, nor where its video is. Times are RFC 3339. */
function taskView({ upstream, state, ...task }: VideoTask): object {
  return {
    id: task.id,
    model: task.model,
    key: task.keyId,
    upstream: upstream.name,
    target: targetLabel(upstream.name, upstream.model),
    format: task.format,
    // Whether its upstream has taken it yet is nobody's concern.
    state: state === 'submitting' ? 'queued' : state,
    progress: task.progress,
    createdAt: dateTime(task.createdAt),
    updatedAt: dateTime(task.updatedAt),
    expiresAt: dateTime(task.expiresAt),
    error: task.error?.message ?? null,
  };
}

function writeCursor(position: string | null): string | null {
  return position === null ? null : Buffer.from(`${cursorMark}${position}`).toString('base64url');
}

function readCursor(text: string | null): string | null {
  if (text === null || text === '') return null;
  const position = Buffer.from(text, 'base64url').toString('utf8');
  if (position.startsWith(cursorMark)) return position.slice(cursorMark.length);
  throw wrongCursor();
}
