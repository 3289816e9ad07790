import { type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { askJson } from '../api.js';
import { Choice } from '../choice.js';
import { useKept } from '../session.js';
import { messageOf, plural } from '../words.js';
import { TaskRow, taskColumns } from './row.js';
import {
  countStates,
  isUnfinished,
  mergeTasks,
  stateLooks,
  type Task,
  type TaskPage,
  type TaskState,
  taskStates,
} from './task.js';

const pageLength = 50;
const busyMs = 3000;
const idleMs = 15_000;

const filterNames: readonly (readonly [TaskState | 'all', string])[] = [
  ['all', 'All'],
  ...taskStates.map((state) => [state, capital(stateLooks[state].words)] as const),
];

interface Tasks {
  readonly filter: Signal<TaskState | 'all'>;
  readonly tasks: Signal<readonly Task[]>;
  /** False until tasks were read. */
  readonly isRead: Signal<boolean>;
  /** Whether there are further tasks that were not read. */
  readonly isMore: Signal<boolean>;
  /** The number of pages shown, which every refresh reads again. */
  readonly pages: Signal<number>;
  readonly isLoading: Signal<boolean>;
  readonly problem: Signal<string>;
}

/** The video tasks with their states and outcomes. */
export function TasksView() {
  const kept = useKept<Tasks>('tasks', () => ({
    filter: signal<TaskState | 'all'>('all'),
    tasks: signal<readonly Task[]>([]),
    isRead: signal(false),
    isMore: signal(false),
    pages: signal(1),
    isLoading: signal(false),
    problem: signal(''),
  }));
  const { filter, pages } = kept;
  const wanted = pages.value;
  useEffect(() => follow(kept, wanted), [kept, wanted]);

  const tasks = kept.tasks.value;
  const listed = tasks.filter(({ state }) => filter.value === 'all' || state === filter.value);
  return (
    <section class="tasks">
      <div class="view-head">
        <h2>Video tasks</h2>
        <Choice label="State" names={filterNames} chosen={filter} />
      </div>
      <p class="problem" role="alert">
        {kept.problem}
      </p>
      <div class="panel">
        <div class="row task-facts">
          <p class="hint">{kept.isRead.value ? summaryOf(tasks, kept.isMore.value) : ''}</p>
          <p class="hint">
            How a task stands is what its last poll found: upstreams are asked when clients ask.
          </p>
        </div>
        <div
          class="table-wrap"
          role="group"
          aria-label="Video tasks"
          tabIndex={0}
          hidden={listed.length === 0}
        >
          <table class="cards" aria-label="Video tasks">
            <thead>
              <tr>
                {taskColumns.map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {listed.map((task) => (
                <TaskRow key={task.id} task={task} />
              ))}
            </tbody>
          </table>
        </div>
        {kept.isRead.value && listed.length === 0 && (
          <p class="empty">
            {tasks.length === 0 ? 'No video task yet.' : 'No such task among those that are loaded.'}
          </p>
        )}
        {kept.isMore.value && (
          <button type="button" class="button" disabled={kept.isLoading} onClick={() => pages.value++}>
            Load more
          </button>
        )}
      </div>
    </section>
  );
}

/** Reads the tasks repeatedly. @returns a function that stops it */
function follow(kept: Tasks, pages: number): () => void {
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const load = async (): Promise<void> => {
    kept.isLoading.value = true;
    try {
      const { tasks, next } = await readPages(pages, stop.signal);
      kept.tasks.value = tasks;
      kept.isMore.value = next !== null;
      kept.isRead.value = true;
      kept.problem.value = '';
    } catch (error) {
      if (!stop.signal.aborted) kept.problem.value = messageOf(error);
    }
    if (stop.signal.aborted) return;
    kept.isLoading.value = false;
    timer = setTimeout(() => void load(), kept.tasks.value.some(isUnfinished) ? busyMs : idleMs);
  };
  void load();
  return () => {
    stop.abort();
    clearTimeout(timer);
  };
}

async function readPages(pages: number, signal: AbortSignal): Promise<TaskPage> {
  let tasks: readonly Task[] = [];
  let next: string | null = null;
  for (let page = 0; page < pages && (page === 0 || next !== null); page++) {
    const query = new URLSearchParams({ limit: `${pageLength}`, ...(next === null ? {} : { cursor: next }) });
    const answer: TaskPage = await askJson<TaskPage>(`/tasks?${query}`, { signal });
    tasks = mergeTasks(tasks, answer.tasks);
    next = answer.next;
  }
  return { tasks, next };
}

function summaryOf(tasks: readonly Task[], isMore: boolean): string {
  const counts = countStates(tasks);
  const parts = taskStates.filter((state) => counts[state] > 0);
  return [
    plural(tasks.length, 'task'),
    ...parts.map((state) => `${counts[state]} ${stateLooks[state].words}`),
    ...(isMore ? ['more that are not loaded'] : []),
  ].join(', ');
}

function capital(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}
