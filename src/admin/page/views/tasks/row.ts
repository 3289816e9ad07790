import { h, setText } from '../../dom.js';
import { ago, moment, nothing, span } from '../../format.js';
import { createMeter } from '../../meter.js';
import { stateLooks, type Task } from './task.js';

/** One row of the table of video tasks. */
export interface TaskRow {
  readonly element: HTMLTableRowElement;
  update(task: Task): void;
}

/** The headings of the columns of a row. */
export const taskColumns = [
  'Task',
  'State',
  'Progress',
  'Model',
  'Key',
  'Upstream',
  'Created',
  'Kept for',
] as const;

export function createTaskRow(first: Task): TaskRow {
  const state = h('span', { class: 'badge' });
  const error = h('span', { class: 'problem' });
  const progress = createMeter('Progress');
  const cell = (name: (typeof taskColumns)[number]): HTMLTableCellElement =>
    h('td', { data: { label: name, cell: name.toLowerCase() } });
  const model = cell('Model');
  const key = cell('Key');
  const upstream = cell('Upstream');
  const age = h('span');
  const createdAt = h('span', { class: 'hint' });
  const expires = cell('Kept for');
  const row: TaskRow = {
    element: h(
      'tr',
      { data: { row: `task:${first.id}` } },
      h(
        'th',
        { scope: 'row' },
        h('span', { class: 'task-id' }, first.id),
        h('span', { class: 'hint' }, first.format),
      ),
      h('td', { data: { label: 'State', cell: 'state' } }, state, error),
      h('td', { data: { label: 'Progress', cell: 'progress' } }, progress.element),
      model,
      key,
      upstream,
      h('td', { data: { label: 'Created', cell: 'created' } }, age, createdAt),
      expires,
    ),
    update(task) {
      const now = Date.now();
      const { words, tone } = stateLooks[task.state];
      setText(state, words);
      state.dataset.tone = tone;
      state.dataset.value = task.state;
      setText(error, task.error ?? '');
      progress.update(
        `${Math.round(task.progress)}%`,
        task.progress / 100,
        task.state === 'failed' ? 'bad' : undefined,
      );
      setText(model, task.model ?? nothing);
      setText(key, task.key ?? nothing);
      setText(upstream, task.target ?? task.upstream ?? nothing);
      const created = Date.parse(task.createdAt);
      setText(age, ago(created, now));
      setText(createdAt, moment(created, now));
      const until = task.expiresAt === null ? null : Date.parse(task.expiresAt);
      setText(expires, until === null ? nothing : until <= now ? 'expired' : span(until - now));
      expires.title = until === null ? '' : `until ${moment(until, now)}`;
    },
  };
  row.update(first);
  return row;
}
