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

/** The failure of a task for which the upstream gives no reason. */
const unexplained: TaskFailure = {
  code: 'generation_failed',
  message: 'The video could not be generated, and the upstream does not say why.',
};

/** The vendors' default lengths, in seconds. */
export const usualSeconds: Readonly<Record<VideoFormat, number>> = {
  compat: 4,
  vendork: 5,
  vendorj: 5,
  generic: 4,
};

/** No video lasts longer: a larger number is not in seconds. */
export const longestSeconds = 3600;

/** Vendors make videos of whole seconds, at least one: a fraction would be charged below its cost. */
export function chargedSeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}

/** The parts of a task known before the call to its upstream. */
interface TaskStart extends Pick<VideoTask, 'id' | 'keyId' | 'groups'> {
  readonly request: VideoRequest;
  readonly upstream: Omit<VideoTask['upstream'], 'id'>;
  /** Unix milliseconds. */
  readonly now: number;
  /** Milliseconds until the record is removed. */
  readonly ttlMs: number;
}

/** A new task, in state `submitting`. */
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
    // Without a length in the request, the upstream chooses its default.
    seconds: String(request.seconds ?? usualSeconds[upstream.format]),
    size: width === null || height === null ? null : `${width}x${height}`,
    externalId: request.externalId,
    result: null,
    error: null,
  };
}

/**
 * A task that its upstream has accepted.
 * @param accepted the task's id at the upstream, and its state if the answer has it
 * @param now Unix milliseconds
 * @returns the task unchanged if it has ended already
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

/** Marks a task as failed, unless it has ended already. `now` is in Unix milliseconds. */
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

/** Whether a task has ended; it never changes again. */
export function hasEnded(task: VideoTask): boolean {
  return task.state === 'completed' || task.state === 'failed';
}

/**
 * Applies an upstream's update to a task. States only move forward. Progress never falls, and is 100 only for a
 * completed task. Without progress in the update it stays: an invented number would mislead.
 * @param now Unix milliseconds
 * @returns the same object when nothing changed
 */
export function advance(task: VideoTask, update: TaskUpdate, now: number): VideoTask {
  if (hasEnded(task)) return task;
  const updatedAt = Math.max(task.updatedAt, now);
  const { seconds, size } = measuresOf(task, update);
  if (update.state === 'completed') {
    return {
      ...task,
      seconds,
      size,
      state: 'completed',
      progress: 100,
      updatedAt,
      // The upstream's clock may differ, and often counts whole seconds.
      completedAt: within(task.createdAt, update.completedAt ?? updatedAt, updatedAt),
      result: update.result,
      error: null,
    };
  }
  const told = Math.floor(update.progress ?? 0);
  // Some upstreams write 100 for any task that has ended.
  const isEnd = update.state === 'failed' && told > 99;
  const progress = isEnd ? task.progress : Math.max(task.progress, within(0, told, 99));
  if (update.state === 'failed')
    return {
      ...task,
      seconds,
      size,
      state: 'failed',
      progress,
      updatedAt,
      error: update.error ?? unexplained,
    };
  const state = order[update.state] > order[task.state] ? update.state : task.state;
  const isSame = seconds === task.seconds && size === task.size;
  if (isSame && state === task.state && progress === task.progress) return task;
  return { ...task, seconds, size, state, progress, updatedAt };
}

/** Length and size, by the upstream if it says them. They replace the requested or default ones. */
function measuresOf(task: VideoTask, { result }: TaskUpdate): Pick<VideoTask, 'seconds' | 'size'> {
  if (result === null) return task;
  const { duration, width, height } = result;
  const isLength = Number.isInteger(duration) && (duration ?? 0) <= longestSeconds;
  return {
    // The format has only whole seconds.
    seconds: isLength ? String(duration) : task.seconds,
    size: Number.isSafeInteger(width) && Number.isSafeInteger(height) ? `${width}x${height}` : task.size,
  };
}

function within(least: number, value: number, most: number): number {
  return Number.isNaN(value) ? least : Math.max(least, Math.min(value, most));
}

/** An upstream's answer to a poll of a task. */
export interface PollAnswer {
  readonly status: number;
  readonly body: Buffer;
  /** Whether the poll used the key that created the task. */
  readonly isMaker: boolean;
}

const notFound = 404;
/** Some upstreams replicate a task to all of their hosts only after they have answered. */
const replicationMs = 60_000;

/**
 * The change that an answer makes to a task.
 * @param now Unix milliseconds
 * @returns null for an error status that says nothing about the task
 * @throws {GatewayError} for an unreadable answer, or a "not found" that may be wrong
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
 * Whether "not found" would mean that the task is gone for good. It would not in a proxy's web page, for a task created
 * just now, or in answer to another account's key.
 */
function isLost({ createdAt }: VideoTask, { body, isMaker }: PollAnswer, now: number): boolean {
  return isMaker && now - createdAt > replicationMs && parseObject(body.toString('utf8')) !== null;
}

/** Some vendors report a task's failure with an error status; the body shows whether the task itself failed. */
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
