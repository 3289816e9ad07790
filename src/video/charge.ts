import { chargedSeconds, longestSeconds } from './advance.js';
import { shorterSide } from './shape.js';
import type { TaskCharge, VideoTask } from './task.js';

/** The correction of a charge: each amount is added to that of the charge. */
type Correction = Pick<TaskCharge, 'nanoUsd' | 'seconds' | 'paidNanoUsd'>;

/** The correction of an ended task's charge: a failed task is free, and a video is charged by its actual length. */
export function correctionOf(task: VideoTask, charge: TaskCharge): Correction {
  const { nanoUsd, seconds, paidNanoUsd } = endedCharge(task, charge);
  return {
    nanoUsd: nanoUsd - charge.nanoUsd,
    seconds: seconds - charge.seconds,
    paidNanoUsd:
      paidNanoUsd === null || charge.paidNanoUsd === null ? null : paidNanoUsd - charge.paidNanoUsd,
  };
}

/** Marks an ended task whose charge needs a correction; returns any other unchanged. */
export function markOwed(task: VideoTask): VideoTask {
  if (task.charge === undefined) return task;
  const { nanoUsd, seconds } = correctionOf(task, task.charge);
  return nanoUsd === 0 && seconds === 0 ? task : { ...task, isOwed: true };
}

/** The cost of an ended task, at the prices of its creation. */
function endedCharge(
  task: VideoTask,
  charge: TaskCharge,
): Pick<TaskCharge, 'seconds' | 'nanoUsd' | 'paidNanoUsd'> {
  const { nanoUsd, paidNanoUsd } = charge;
  if (task.state === 'failed')
    return { seconds: 0, nanoUsd: 0, paidNanoUsd: paidNanoUsd === null ? null : 0 };
  const { others } = task.result ?? {};
  // An upstream that lists its videos may have made fewer than asked for.
  const videos = others === undefined ? charge.videos : Math.min(charge.videos, 1 + others.length);
  const duration = task.result?.duration ?? null;
  const isTold = duration !== null && duration <= longestSeconds;
  // A whole number of frames makes a video a little longer or shorter than requested.
  // The upstream may have told the length before, which the task then has.
  const each = isTold ? Math.max(1, Math.round(duration)) : chargedSeconds(Number(task.seconds) || 0);
  const seconds = videos * each;
  const longer = charge.seconds > 0 ? seconds / charge.seconds : 1;
  const { secondsNanoUsd = 0, secondsPaidNanoUsd = 0 } = charge;
  const ofResolution = pricedResolution(task, charge);
  const more = Math.round((ofResolution?.secondsNanoUsd ?? secondsNanoUsd) * longer - secondsNanoUsd);
  const morePaid = Math.round(
    (ofResolution?.secondsPaidNanoUsd ?? secondsPaidNanoUsd) * longer - secondsPaidNanoUsd,
  );
  return {
    seconds,
    nanoUsd: nanoUsd + more,
    paidNanoUsd: paidNanoUsd === null ? null : paidNanoUsd + morePaid,
  };
}

/** The cost of the seconds in the resolution that the upstream reports; null if that has no price of its own. */
function pricedResolution({ result }: VideoTask, { resolutions }: TaskCharge) {
  const { width = null, height = null } = result ?? {};
  if (resolutions === undefined || width === null || height === null) return null;
  const name = shorterSide({ width, height });
  return resolutions.find(({ resolution }) => resolution === name) ?? null;
}
