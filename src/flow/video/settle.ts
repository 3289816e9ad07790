import { performance } from 'node:perf_hooks';
import { GatewayError } from '../../errors.js';
import { budgetKeptMs } from '../../limits/pools.js';
import { type CallRecord, none, unknownCost } from '../../metrics/call-record.js';
import { targetLabel } from '../../metrics/gauges.js';
import { hasEnded } from '../../video/advance.js';
import type { BookedTask } from '../../video/book.js';
import { correctionOf, owedWithEnd } from '../../video/charge.js';
import type { VideoTask } from '../../video/task.js';
import type { Services } from '../services.js';

/** Whoever has begun to put a task right is done by then, or somebody else does it. */
const claimMs = 10_000;
/** Characters of a task's id, which is random: so many tell it from the few that an account remembers. */
const debtLength = 12;

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
  if (task !== null && hasEnded(task) && !hasEnded(before)) onEnded(services, task);
  return task;
}

/**
 * A task has ended just now: begins to put right what it was charged, which a sweep does where this fails, and to keep
 * its video.
 */
export function onEnded(services: Services, task: VideoTask): void {
  if (task.state === 'completed') services.keepVideo(task);
  if (owedWithEnd(task).isOwed === undefined) return;
  settleTask(services, task.id).catch((fault: unknown) => {
    // The store is gone, as its other users tell.
    if (!(fault instanceof GatewayError)) services.reportFault('promise', fault, null);
  });
}

/** Puts right what a task was charged, unless that was done or somebody else is about it. */
export async function settleTask(services: Services, id: string): Promise<void> {
  const { book } = services;
  const until = performance.now() + claimMs;
  if (!(await book.claim('owed', id, claimMs))) return;
  const booked = await book.find(id);
  // Its end is about to be written, or its writer was killed before it was.
  if (booked !== null && !hasEnded(booked.task)) return;
  if (booked?.task.isOwed !== undefined && !(await putRight(services, booked.task, until))) return;
  await book.clearOwed(id, booked);
}

/** @returns false when it has taken so long that somebody else may be about it */
async function putRight(services: Services, task: VideoTask, until: number): Promise<boolean> {
  const { charge } = task;
  if (charge === undefined) return true;
  const { nanoUsd, seconds, paidNanoUsd } = correctionOf(task, charge);
  // First, since the next call may be let in by them.
  for (const { pool, limit } of nanoUsd === 0 ? [] : charge.budgets) {
    // An account remembers only its last debts: two that tell it of many tasks must not be far apart.
    if (performance.now() >= until) return false;
    const debt = task.id.slice(-debtLength);
    const asked = { limit, least: 0, want: 0, owed: nanoUsd, debt, ttlMs: budgetKeptMs };
    await services.budgets.reserve(pool, asked);
  }
  await services.correct(
    correctionRecord(task, {
      costNanoUsd: nanoUsd,
      paidNanoUsd: paidNanoUsd ?? unknownCost,
      mediaSeconds: seconds,
      isMetered: services.running.snapshot.usage.ledger,
    }),
  );
  return true;
}

/** A line of the ledger that puts a task's price right. Its id is the task's. */
function correctionRecord(
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
    endsLater: false,
    ...amounts,
  };
}
