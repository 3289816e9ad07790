import { GatewayError } from '../errors.js';
import { parseObject } from '../wire/json.js';
import { upstreamFormats } from './formats.js';
import type {
  TaskFailure,
  TaskState,
  TaskUpdate,
  UpstreamFormat,
  VideoFormat,
  VideoRequest,
  VideoTask,
} from './task.js';

const order: Readonly<Record<TaskState, number>> = {
  submitting: 0,
  queued: 1,
  in_progress: 2,
  completed: 3,
  failed: 3,
};

/** What is said of a task that failed for a reason that the upstream does not tell. */
const unexplained: TaskFailure = {
  code: 'generation_failed',
  message: 'The video could not be generated, and the upstream does not say why.',
};

/** What the vendors make of a request that names no length, in seconds. */
export const usualSeconds: Readonly<Record<VideoFormat, number>> = {
  compat: 4,
  vendork: 5,
  vendorj: 5,
  generic: 4,
};

/** Vendors make videos of whole seconds, of one at least: less would be paid for than is made. */
export function chargedSeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}

/** What is known of a task before its upstream is asked. */
interface TaskStart extends Pick<VideoTask, 'id' | 'keyId' | 'groups'> {
  readonly request: VideoRequest;
  readonly upstream: Omit<VideoTask['upstream'], 'id'>;
  /** Unix milliseconds. */
  readonly now: number;
  /** Milliseconds until the record goes. */
  readonly ttlMs: number;
}

/** A task that its upstream does not know yet. */
export function newTask({ id, keyId, groups, request, upstream, now, ttlMs }: TaskStart): VideoTask {
  const { width, height } = request;
  return {
    version: 1,
    id,
    keyId,
    groups,
    format: request.format,
    model: request.model,
    upstream: { ...upstream, id: null },
    operation: request.operation,
    state: 'submitting',
    progress: 0,
    createdAt: now,
    updatedAt: now,
    completedAt: null,
    expiresAt: now + ttlMs,
    // The length of a request that names none is for the upstream to choose.
    seconds: String(request.seconds ?? usualSeconds[upstream.format]),
    size: width === null || height === null ? null : `${width}x${height}`,
    externalId: request.externalId,
    result: null,
    error: null,
  };
}

/**
 * A task that its upstream has taken.
 * @param accepted the task's id there, and its state where the answer told it
 * @param now Unix milliseconds
 * @returns the task as it is when it has ended already
 */
export function submitted(
  task: VideoTask,
  accepted: { readonly id: string; readonly update: TaskUpdate | null },
  now: number,
): VideoTask {
  if (hasEnded(task)) return task;
  const queued: VideoTask = {
    ...task,
    upstream: { ...task.upstream, id: accepted.id },
    state: task.state === 'submitting' ? 'queued' : task.state,
    updatedAt: Math.max(task.updatedAt, now),
  };
  return accepted.update === null ? queued : advance(queued, accepted.update, now);
}

/** A task that has failed, unless it has ended already. Time in Unix milliseconds. */
export function failedTask(task: VideoTask, failure: TaskFailure, now: number): VideoTask {
  const update: TaskUpdate = {
    state: 'failed',
    progress: null,
    completedAt: null,
    result: null,
    error: failure,
  };
  return advance(task, update, now);
}

/** True for a task that never changes again. */
export function hasEnded(task: VideoTask): boolean {
  return task.state === 'completed' || task.state === 'failed';
}

/**
 * What becomes of a task by what its upstream said: states go only forward, progress never falls, and is 100 exactly
 * for a completed task. An upstream that tells no progress leaves it as it was: a made-up number would only mislead.
 * @param now Unix milliseconds
 * @returns the same object when nothing changed
 */
export function advance(task: VideoTask, update: TaskUpdate, now: number): VideoTask {
  if (hasEnded(task)) return task;
  const updatedAt = Math.max(task.updatedAt, now);
  if (update.state === 'completed') {
    const duration = update.result?.duration ?? null;
    return {
      ...task,
      // What was asked for, or guessed, gives way to what was made. The format has whole seconds alone.
      seconds: Number.isSafeInteger(duration) ? String(duration) : task.seconds,
      state: 'completed',
      progress: 100,
      updatedAt,
      // The upstream's clock may be another, and is often one of whole seconds.
      completedAt: within(task.createdAt, update.completedAt ?? updatedAt, updatedAt),
      result: update.result,
      error: null,
    };
  }
  if (update.state === 'failed')
    return { ...task, state: 'failed', updatedAt, error: update.error ?? unexplained };
  const state = order[update.state] > order[task.state] ? update.state : task.state;
  const progress = Math.max(task.progress, within(0, Math.floor(update.progress ?? 0), 99));
  if (state === task.state && progress === task.progress) return task;
  return { ...task, state, progress, updatedAt };
}

function within(least: number, value: number, most: number): number {
  return Number.isNaN(value) ? least : Math.max(least, Math.min(value, most));
}

/** An upstream's answer to the question how a task stands. */
export interface PollAnswer {
  readonly status: number;
  readonly body: Buffer;
  /** Whether the upstream was asked as the one that made the task. */
  readonly isMaker: boolean;
}

const notFound = 404;
/** Some upstreams make a task known to all of their hosts only after they have answered. */
const surelyKnownMs = 60_000;

/**
 * What an answer makes of a task.
 * @param now Unix milliseconds
 * @returns null for an error status that says nothing of the task
 * @throws {GatewayError} for an answer that cannot be understood, or whose "not found" is not to be believed
 */
export function changeByPoll(
  task: VideoTask,
  answer: PollAnswer,
  now: number,
): ((task: VideoTask) => VideoTask) | null {
  const { status, body } = answer;
  const lost = isLost(task, answer, now) ? (known: VideoTask) => lostTask(known, now) : null;
  if (status === notFound) return lost;
  try {
    const upstreamFormat = upstreamFormats[task.upstream.format];
    const update = status < 300 ? upstreamFormat.readPolled(body) : failureIn(upstreamFormat, body);
    return update === null ? null : (known) => advance(known, update, now);
  } catch (fault) {
    if (lost !== null && fault instanceof GatewayError && fault.kind === 'not_found') return lost;
    throw fault;
  }
}

/**
 * Whether "not found" would mean that the task is gone for good: not so from a proxy's page, of a task that was made
 * just now, or with the key of another account.
 */
function isLost({ createdAt }: VideoTask, { body, isMaker }: PollAnswer, now: number): boolean {
  return isMaker && now - createdAt > surelyKnownMs && parseObject(body.toString('utf8')) !== null;
}

/** Some vendors tell the failure of a task by an error status: the body says whether it is the task that failed. */
function failureIn(upstreamFormat: UpstreamFormat, body: Buffer): TaskUpdate | null {
  try {
    const update = upstreamFormat.readPolled(body);
    return update.state === 'failed' ? update : null;
  } catch (fault) {
    if (fault instanceof GatewayError) return null;
    throw fault;
  }
}

function lostTask(task: VideoTask, now: number): VideoTask {
  const failure = { code: 'task_lost', message: 'The upstream no longer knows this task.' };
  return failedTask(task, failure, now);
}
