import { performance } from 'node:perf_hooks';
import { isAlive, processHost } from '../store/process-mark.js';
import { failedTask } from './advance.js';
import type { Submission, TaskBook } from './book.js';
import type { VideoTask } from './task.js';

/** A submission that was cut off; whether the upstream has created the task is unknown. */
interface Interrupted {
  readonly submission: Submission;
  /** The task in its current state. */
  readonly task: VideoTask;
}

/**
 * The record of a submission by this process.
 * @param longestMs bound of its duration
 */
export function submissionHere(taskId: string, longestMs: number): Submission {
  const at = Date.now();
  return { taskId, host: processHost(), process: process.pid, at, until: at + longestMs };
}

/**
 * Finds submissions whose process ended before it recorded their end, and ends their tasks as failed. Nothing is sent
 * again: the upstream may have created the video, and would create a second one.
 * @returns the submissions found, each once across all processes
 */
export async function endInterrupted(book: TaskBook): Promise<readonly Interrupted[]> {
  const found: Interrupted[] = [];
  for (const submission of await book.unsettled()) {
    if (!wasInterrupted(submission)) continue;
    const booked = await book.find(submission.taskId);
    // The task is recorded before the call to the upstream. Without it no call was sent, or no upstream accepted it.
    let ended = false;
    const task =
      booked === null
        ? null
        : await book.update(booked, (current) => {
            ended = current.state === 'submitting';
            return ended ? failedTask(current, interruption, Date.now()) : current;
          });
    // If the task's end was recorded but the submission's was not, the task may not be watched yet.
    if (task === null || task.upstream.id === null) await book.forget(submission.taskId);
    else await book.recordSubmission(task);
    if (ended && task !== null) found.push({ submission, task });
  }
  return found;
}

const interruption = {
  code: 'submission_interrupted',
  message:
    'The gateway was stopped while it submitted this task, and cannot know whether the upstream has made it. ' +
    'Check there before you submit it again.',
};

function wasInterrupted({ host, process: pid, at, until }: Submission): boolean {
  if (Date.now() > until) return true;
  if (host !== processHost()) return false;
  // A restarted container reuses the process ids of the previous run.
  return pid === process.pid ? at < Math.floor(performance.timeOrigin) : !isAlive(pid);
}

/*
 * Reads the expiry of a signed URL from its query. AWS, Google and Volcengine sign from a date for a number of seconds
 * (`X-Amz-Date`, `X-Amz-Expires` and the like). Older signatures and those of most CDNs have the Unix second (`Expires`),
 * Azure has a date (`se`), and Tencent has start and end (`q-sign-time`).
 */

const lasting = /^x-([a-z]+)-expires$/;
const compactDate = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;
const unixNames: ReadonlySet<string> = new Set(['expires', 'expire', 'x-expires']);
const unixSeconds = /^\d{10}$/;
const isoDate = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const signedBetween = /^\d{10};(\d{10})$/;

/** @returns the expiry in Unix milliseconds; null for a URL without one, or an invalid URL */
export function expiryOf(url: string): number | null {
  if (!URL.canParse(url)) return null;
  const said = [...new URL(url).searchParams].map(([name, value]) => [name.toLowerCase(), value] as const);
  const query = new Map(said);
  let earliest: number | null = null;
  for (const [name, value] of said) {
    const at = expiryIn(name, value, query);
    if (at !== null && (earliest === null || at < earliest)) earliest = at;
  }
  return earliest;
}

function expiryIn(name: string, value: string, query: ReadonlyMap<string, string>): number | null {
  const vendor = lasting.exec(name)?.[1];
  if (vendor !== undefined) {
    const from = compactTime(query.get(`x-${vendor}-date`) ?? '');
    return from === null || !/^\d{1,8}$/.test(value) ? null : from + Number(value) * 1000;
  }
  if (unixNames.has(name)) return unixSeconds.test(value) ? Number(value) * 1000 : null;
  if (name === 'se') return isoDate.test(value) ? timeOf(value) : null;
  const until = name === 'q-sign-time' ? signedBetween.exec(value)?.[1] : undefined;
  return until === undefined ? null : Number(until) * 1000;
}

function compactTime(text: string): number | null {
  return compactDate.test(text) ? timeOf(text.replace(compactDate, '$1-$2-$3T$4:$5:$6Z')) : null;
}

function timeOf(text: string): number | null {
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}
