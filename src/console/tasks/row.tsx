import { ago, moment, nothing, span } from '../format.js';
import { Meter } from '../meter.js';
import { stateLooks, type Task } from './task.js';

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

/** One row of the table of video tasks. */
export function TaskRow({ task }: { readonly task: Task }) {
  const now = Date.now();
  const { words, tone } = stateLooks[task.state];
  const created = Date.parse(task.createdAt);
  const until = task.expiresAt === null ? null : Date.parse(task.expiresAt);
  return (
    <tr data-row={`task:${task.id}`}>
      <th scope="row">
        <span class="task-id">{task.id}</span>
        <span class="hint">{task.format}</span>
      </th>
      <td data-label="State" data-cell="state">
        <span class="badge" data-tone={tone} data-value={task.state}>
          {words}
        </span>
        <span class="problem">{task.error}</span>
      </td>
      <td data-label="Progress" data-cell="progress">
        <Meter
          label="Progress"
          text={`${Math.round(task.progress)}%`}
          share={task.progress / 100}
          tone={task.state === 'failed' ? 'bad' : undefined}
        />
      </td>
      <td data-label="Model" data-cell="model">
        {task.model ?? nothing}
      </td>
      <td data-label="Key" data-cell="key">
        {task.key ?? nothing}
      </td>
      <td data-label="Upstream" data-cell="upstream">
        {task.target ?? task.upstream ?? nothing}
      </td>
      <td data-label="Created" data-cell="created">
        <span>{ago(created, now)}</span>
        <span class="hint">{moment(created, now)}</span>
      </td>
      <td
        data-label="Kept for"
        data-cell="kept for"
        title={until === null ? '' : `until ${moment(until, now)}`}
      >
        {until === null ? nothing : until <= now ? 'expired' : span(until - now)}
      </td>
    </tr>
  );
}
