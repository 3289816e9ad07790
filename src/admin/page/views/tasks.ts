import { askJson } from '../api.js';
import { createChoice } from '../choice.js';
import { h, setText } from '../dom.js';
import { placeAll } from '../place.js';
import type { View } from '../view.js';
import { messageOf, plural } from '../words.js';
import { createTaskRow, type TaskRow, taskColumns } from './tasks/row.js';
import {
  countStates,
  isUnfinished,
  mergeTasks,
  stateLooks,
  type Task,
  type TaskPage,
  type TaskState,
  taskStates,
} from './tasks/task.js';

const pageLength = 50;
const busyMs = 3000;
const idleMs = 15_000;

/** Video tasks: how they stand, and what became of them. */
export function createTasksView(): View {
  let tasks: readonly Task[] = [];
  let rows = new Map<string, TaskRow>();
  let next: string | null = null;
  /** Pages that are shown, and read again with every refresh. */
  let pages = 1;
  let isShown = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Of the last loading: the answer of an older one is not shown. */
  let loading = 0;

  const notice = h('p', { class: 'problem', attributes: { role: 'alert' } });
  const said = h('p', { class: 'hint' });
  const asked = h(
    'p',
    { class: 'hint' },
    'How a task stands is what its last poll found: upstreams are asked when clients ask.',
  );
  const body = h('tbody');
  const empty = h('p', { class: 'empty', hidden: true });
  const filter = createChoice<TaskState | 'all'>(
    'State',
    [['all', 'All'], ...taskStates.map((state) => [state, capital(stateLooks[state].words)] as const)],
    () => show(),
  );
  const table = h(
    'div',
    { class: 'table-wrap', tabIndex: 0, attributes: { role: 'group', 'aria-label': 'Video tasks' } },
    h(
      'table',
      { class: 'cards', attributes: { 'aria-label': 'Video tasks' } },
      h('thead', {}, h('tr', {}, ...taskColumns.map((name) => h('th', { scope: 'col' }, name)))),
      body,
    ),
  );
  const more = h(
    'button',
    {
      type: 'button',
      class: 'button',
      hidden: true,
      on: {
        click: () => {
          pages++;
          void load();
        },
      },
    },
    'Load more',
  );

  const show = (): void => {
    const wanted = filter.chosen;
    const listed = tasks.filter(({ state }) => wanted === 'all' || state === wanted);
    const before = rows;
    rows = new Map(
      listed.map((task) => {
        const row = before.get(task.id) ?? createTaskRow(task);
        row.update(task);
        return [task.id, row];
      }),
    );
    placeAll(
      body,
      [...rows.values()].map(({ element }) => element),
    );
    const counts = countStates(tasks);
    const parts = taskStates.filter((state) => counts[state] > 0);
    setText(
      said,
      [
        plural(tasks.length, 'task'),
        ...parts.map((state) => `${counts[state]} ${stateLooks[state].words}`),
        ...(next === null ? [] : ['more that are not loaded']),
      ].join(', '),
    );
    table.hidden = listed.length === 0;
    empty.hidden = listed.length > 0;
    setText(empty, tasks.length === 0 ? 'No video task yet.' : 'No such task among those that are loaded.');
    more.hidden = next === null;
  };

  const load = async (): Promise<void> => {
    clearTimeout(timer);
    const mine = ++loading;
    more.disabled = true;
    try {
      let read: readonly Task[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < pages && (page === 0 || cursor !== null); page++) {
        const query = new URLSearchParams({ limit: `${pageLength}`, ...(cursor === null ? {} : { cursor }) });
        const answer: TaskPage = await askJson<TaskPage>(`/tasks?${query}`);
        if (mine !== loading) return;
        read = mergeTasks(read, answer.tasks);
        cursor = answer.next;
      }
      tasks = read;
      next = cursor;
      setText(notice, '');
      show();
    } catch (error) {
      if (mine === loading) setText(notice, messageOf(error));
    } finally {
      if (mine === loading) {
        more.disabled = false;
        if (isShown) timer = setTimeout(() => void load(), tasks.some(isUnfinished) ? busyMs : idleMs);
      }
    }
  };

  return {
    element: h(
      'section',
      { class: 'tasks' },
      h('div', { class: 'view-head' }, h('h2', {}, 'Video tasks'), filter.element),
      notice,
      h('div', { class: 'panel' }, h('div', { class: 'row task-facts' }, said, asked), table, empty, more),
    ),
    show() {
      isShown = true;
      void load();
    },
    hide() {
      isShown = false;
      loading++;
      clearTimeout(timer);
    },
  };
}

function capital(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}
