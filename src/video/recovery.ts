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
