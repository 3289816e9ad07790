import { performance } from 'node:perf_hooks';
import { budgetKeptMs } from '../../limits/pools.js';
import { type CallRecord, none, unknownCost } from '../../metrics/call-record.js';
import { targetLabel } from '../../metrics/gauges.js';
import { hasEnded } from '../../video/advance.js';
import type { BookedTask } from '../../video/book.js';
import type { TaskCharge, VideoTask } from '../../video/task.js';
import type { Services } from '../services.js';

/**
 * Changes a task, and puts right what it was charged when that ends it: whoever writes its end into the store does so,
 * and nobody else.
 * @param change may be called again when somebody else changed it in between
 * @returns the task as it is then, or null when it is gone
 */
export async function changeTask(
  services: Services,
  booked: BookedTask,
  change: (task: VideoTask) => VideoTask,
): Promise<VideoTask | null> {
  let before = booked.task;
  const task = await services.book.update(booked, (known) => {
    before = known;
    return change(known);
  });
  if (task !== null && !hasEnded(before) && hasEnded(task)) settleTask(services, task);
  return task;
}

/** Puts right what a task was charged that has ended just now: one that failed is free, and a video costs what it lasts. */
export function settleTask(services: Services, task: VideoTask): void {
  const { charge } = task;
  if (charge === undefined) return;
  const { nanoUsd, paidNanoUsd, seconds } = endedCharge(task, charge);
  const more = nanoUsd - charge.nanoUsd;
  if (more === 0 && seconds === charge.seconds) return;
  services.correct(
    correctionOf(task, {
      costNanoUsd: more,
      paidNanoUsd:
        paidNanoUsd === null || charge.paidNanoUsd === null ? unknownCost : paidNanoUsd - charge.paidNanoUsd,
      mediaSeconds: seconds - charge.seconds,
      isMetered: services.running.snapshot.usage.ledger,
    }),
  );
  if (more !== 0) settleBudgets(services, task.id, charge, more);
}

/** No video lasts longer: a number above that is one of something else than seconds. */
const longestSeconds = 3600;

/** What a task costs by how it has ended, at the price at which it was made. */
function endedCharge(
  task: VideoTask,
  charge: TaskCharge,
): Pick<TaskCharge, 'seconds' | 'nanoUsd' | 'paidNanoUsd'> {
  const { nanoUsd, paidNanoUsd, videos } = charge;
  if (task.state === 'failed')
    return { seconds: 0, nanoUsd: 0, paidNanoUsd: paidNanoUsd === null ? null : 0 };
  const duration = task.result?.duration ?? null;
  if (duration === null || duration > longestSeconds) return charge;
  // Frames make a video a little longer or shorter than it was asked for.
  const seconds = videos * Math.max(1, Math.round(duration));
  const longerBy = charge.seconds > 0 ? seconds / charge.seconds - 1 : 0;
  const { secondsNanoUsd = 0, secondsPaidNanoUsd = 0 } = charge;
  return {
    seconds,
    nanoUsd: nanoUsd + Math.round(secondsNanoUsd * longerBy),
    paidNanoUsd: paidNanoUsd === null ? null : paidNanoUsd + Math.round(secondsPaidNanoUsd * longerBy),
  };
}

/** Tells the store of each budget until it answers: what is told again under the task's name counts once. */
function settleBudgets(
  { budgets: accounts, book }: Services,
  id: string,
  charge: TaskCharge,
  more: number,
): void {
  for (const { pool, limit } of charge.budgets) {
    const work = async (): Promise<void> => {
      const owed = { owed: more, debt: id, ttlMs: budgetKeptMs };
      await accounts.reserve(pool, { total: limit, least: 0, want: 0, ...owed });
    };
    void work().catch(() => book.later(`${id} ${pool}`, work));
  }
}

/** A line of the ledger that puts a task's price right. Its id is the task's. */
function correctionOf(
  { id, keyId, groups, model, upstream }: VideoTask,
  amounts: Pick<CallRecord, 'costNanoUsd' | 'paidNanoUsd' | 'mediaSeconds' | 'isMetered'>,
): CallRecord {
  return {
    id,
    number: -1,
    method: '',
    path: '',
    client: null,
    keyId,
    groups,
    protocol: 'video',
    model,
    target: targetLabel(upstream.name, upstream.model),
    status: 0,
    outcome: 'correction',
    error: null,
    cause: null,
    usage: null,
    givenUp: null,
    otherAttempts: null,
    bytesIn: 0,
    bytesOut: 0,
    leftOut: [],
    lostInAnswer: [],
    retries: 0,
    units: 0,
    endedAt: performance.now(),
    durationMs: 0,
    firstByteMs: none,
    ownMs: none,
    ...amounts,
  };
}
