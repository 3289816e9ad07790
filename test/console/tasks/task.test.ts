import { test } from 'tap';
import { countStates, isUnfinished, mergeTasks, type Task } from '../../../src/console/tasks/task.js';

const task = (id: string, minute: number, more: Partial<Task> = {}): Task => ({
  id,
  model: 'sim-video',
  key: 'demo',
  upstream: 'simulator',
  target: 'simulator/sim-video',
  format: 'openai',
  state: 'queued',
  progress: 0,
  createdAt: new Date(Date.UTC(2026, 10, 22, 9, minute)).toISOString(),
  updatedAt: new Date(Date.UTC(2026, 10, 22, 9, minute)).toISOString(),
  expiresAt: null,
  error: null,
  ...more,
});

test('tasks of several pages are there once, the newest first, as they were read last', async (t) => {
  const known = [task('b', 2), task('a', 1)];
  const merged = mergeTasks(known, [task('c', 3), task('a', 1, { state: 'completed', progress: 100 })]);
  t.same(
    merged.map(({ id, state }) => [id, state]),
    [
      ['c', 'queued'],
      ['b', 'queued'],
      ['a', 'completed'],
    ],
  );
});

test('what may still change, and how many there are of each state', async (t) => {
  const tasks = [task('a', 1), task('b', 2, { state: 'in_progress' }), task('c', 3, { state: 'failed' })];
  t.same(tasks.map(isUnfinished), [true, true, false]);
  t.same(countStates(tasks), { queued: 1, in_progress: 1, completed: 0, failed: 1 });
});
