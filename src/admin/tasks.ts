import { targetLabel } from '../metrics/gauges.js';
import type { Store } from '../store/store.js';
import type { VideoTask } from '../video/task.js';
import { dateTime, decodeCursor, json, readLimit, wrongCursor } from './answer.js';
import { type AdminRoute, route } from './routes.js';
import { checkNames } from './usage.js';

/** Source of tasks. */
export type TaskStore = Pick<Store, 'list'>;

const usualPage = 50;
const longestPage = 200;
/** Prefix of a position in the store, which distinguishes it from any other text. */
const cursorMark = 'tasks:';

/**
 * Routes `GET /tasks`, the video tasks of all keys. The newest come first as long as `store.taskDays` does not change,
 * because the store lists them in the order in which they expire.
 */
export function taskRoutes(store: TaskStore): readonly AdminRoute[] {
  return [
    route('GET', '/tasks', async ({ query }) => {
      checkNames(query, ['limit', 'cursor']);
      const limit = readLimit(query, usualPage, longestPage);
      const from = readCursor(query.get('cursor'));
      // Imported here because the check of a record loads the schema compiler.
      const { listTasks } = await import('../video/book.js');
      const page = await listTasks(store, limit, from);
      return json({ tasks: page.tasks.map(taskView), next: writeCursor(page.next) });
    }),
  ];
}

/** Shows a task without the client's input and the video's address. Times are RFC 3339. */
function taskView({ upstream, state, ...task }: VideoTask): object {
  return {
    id: task.id,
    model: task.model,
    key: task.keyId,
    upstream: upstream.name,
    target: targetLabel(upstream.name, upstream.model),
    format: task.format,
    // Operators need not know whether the upstream has accepted it yet.
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
  const position = decodeCursor(text);
  if (position.startsWith(cursorMark)) return position.slice(cursorMark.length);
  throw wrongCursor();
}
