import { GatewayError } from '../errors.js';
import { parseObject } from '../wire/json.js';
import { advance, failedTask } from './advance.js';
import { upstreamFormats } from './formats.js';
import type { TaskUpdate, UpstreamFormat, VideoTask } from './task.js';

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
  const failure = { code: 'task_lost', message: 'The upstream does not know this task any more.' };
  return failedTask(task, failure, now);
}
