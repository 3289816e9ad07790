import type { Tone } from '../targets/target.js';

/** A video task in the answer of `GET /tasks`. Times are RFC 3339. */
export interface Task {
  readonly id: string;
  readonly model: string | null;
  readonly key: string | null;
  readonly upstream: string | null;
  readonly target: string | null;
  readonly format: string;
  readonly state: TaskState;
  /** From 0 to 100. */
  readonly progress: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly expiresAt: string | null;
  /** The gateway's message; null if the task has not failed. */
  readonly error: string | null;
}

export const taskStates = ['queued', 'in_progress', 'completed', 'failed'] as const;
export type TaskState = (typeof taskStates)[number];

export interface TaskPage {
  readonly tasks: readonly Task[];
  readonly next: string | null;
}

interface StateLook {
  readonly words: string;
  readonly tone: Tone;
}

/** How states are shown. */
export const stateLooks: Readonly<Record<TaskState, StateLook>> = {
  queued: { words: 'queued', tone: 'idle' },
  in_progress: { words: 'in progress', tone: 'warn' },
  completed: { words: 'completed', tone: 'good' },
  failed: { words: 'failed', tone: 'bad' },
};

/** Whether a task may still change. */
export function isUnfinished({ state }: Task): boolean {
  return state === 'queued' || state === 'in_progress';
}

/** Merges known tasks with those of a page read later: newest first, each once. */
export function mergeTasks(known: readonly Task[], read: readonly Task[]): readonly Task[] {
  const byId = new Map([...known, ...read].map((task) => [task.id, task]));
  return [...byId.values()].sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt));
}

/** The number of tasks in each state. */
export function countStates(tasks: readonly Task[]): Readonly<Record<TaskState, number>> {
  const counts = { queued: 0, in_progress: 0, completed: 0, failed: 0 };
  for (const { state } of tasks) counts[state]++;
  return counts;
}
