import { performance } from 'node:perf_hooks';
import { GatewayError } from '../../errors.js';
import { budgetKeptMs } from '../../limits/pools.js';
import { type CallRecord, none, unknownCost } from '../../metrics/call-record.js';
import { targetLabel } from '../../metrics/gauges.js';
import { hasEnded } from '../../video/advance.js';
import type { BookedTask } from '../../video/book.js';
import { correctionOf, markOwed } from '../../video/charge.js';
import type { VideoTask } from '../../video/task.js';
import type { Services } from '../services.js';

/** A claimed correction of a task's charge ends within this time; afterwards another process may make it. */
const claimMs = 10_000;
/** Characters of a task's random id that identify its debt among the few that an account remembers. */
const debtLength = 12;

/**
 * Changes a task. If the change ends it, corrects its charge: only the process that records a task's end does so.
 * @param change called again if another process changed the task in between
 * @returns the changed task, or null if it no longer exists
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
 * Called when a task has ended. Starts to correct its charge, which a sweep repeats if this fails, and to keep its
 * video.
 */
export function onEnded(services: Services, task: VideoTask): void {
  if (task.state === 'completed') services.keepVideo(task);
  if (markOwed(task).isOwed === undefined) return;
  settleTask(services, task.id).catch((fault: unknown) => {
    // The store is unavailable, which its other users report.
    if (!(fault instanceof GatewayError)) services.reportFault('promise', fault, null);
  });
}

/** Corrects the charge of a task, unless that was done or another process has claimed it. */
export async function settleTask(services: Services, id: string): Promise<void> {
  const { book } = services;
  const until = performance.now() + claimMs;
  if (!(await book.claim('owed', id, claimMs))) return;
  const booked = await book.find(id);
  // Its end is about to be recorded, or the process that would have recorded it was killed.
  if (booked !== null && !hasEnded(booked.task)) return;
  if (booked?.task.isOwed !== undefined && !(await applyCorrection(services, booked.task, until))) return;
  await book.clearOwed(id, booked);
}

/** @returns false if it took so long that another process may have claimed the correction */
async function applyCorrection(services: Services, task: VideoTask, until: number): Promise<boolean> {
  const { charge } = task;
  if (charge === undefined) return true;
  const { nanoUsd, seconds, paidNanoUsd } = correctionOf(task, charge);
  // Budgets first, since they decide whether the next call is admitted.
  for (const { pool, limit } of nanoUsd === 0 ? [] : charge.budgets) {
    // An account remembers only its latest debts, so two processes must not report the same ones far apart.
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

/** The ledger line that corrects a task's price; it has the task's id. */
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
    characters: 0,
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
