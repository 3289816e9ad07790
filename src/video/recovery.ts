import { performance } from 'node:perf_hooks';
import { isAlive, processHost } from '../store/process-mark.js';
import { failedTask } from './advance.js';
import type { Submission, TaskBook } from './book.js';
import type { VideoTask } from './task.js';

/** A submission that was cut off: whether the upstream has made the task is not known. */
interface Interrupted {
  readonly submission: Submission;
  /** As it stands now. */
  readonly task: VideoTask;
}

/**
 * What this process notes of a submission that it makes.
 * @param longestMs it does not last longer
 */
export function thisProcess(taskId: string, longestMs: number): Submission {
  const at = Date.now();
  return { taskId, host: processHost(), process: process.pid, at, until: at + longestMs };
}

/**
 * Finds submissions whose process ended before their end was noted, and ends their tasks as failed. Nothing is asked
 * of an upstream again: it may have made the video, and would make it twice.
 * @returns those that were found, each of them once over all processes
 */
export async function endInterrupted(book: TaskBook): Promise<readonly Interrupted[]> {
  const found: Interrupted[] = [];
  for (const submission of await book.unsettled()) {
    if (!hasEnded(submission)) continue;
    const booked = await book.find(submission.taskId);
    // Its task is noted before an upstream is asked. Without one none was, or none has taken it.
    let ended = false;
    const task =
      booked === null
        ? null
        : await book.update(booked, (current) => {
            ended = current.state === 'submitting';
            return ended ? failedTask(current, interruption, Date.now()) : current;
          });
    // Where its end was noted and only the submission's was not, it may not be watched yet.
    if (task === null || task.upstream.id === null) await book.forget(submission.taskId);
    else await book.settle(task);
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

function hasEnded({ host, process: pid, at, until }: Submission): boolean {
  if (Date.now() > until) return true;
  if (host !== processHost()) return false;
  // A container that starts anew gives its processes the numbers of those before.
  return pid === process.pid ? at < Math.floor(performance.timeOrigin) : !isAlive(pid);
}
