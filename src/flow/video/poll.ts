import { performance } from 'node:perf_hooks';
import { noteVendorAccountRefused } from '../../attempts/attempts.js';
import { failureError, statusError } from '../../attempts/told-error.js';
import type { Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { toldError } from '../../protocols/error-formats/vendor-account.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account-error.js';
import type { UpstreamFailure } from '../../upstream/client.js';
import { hasEnded } from '../../video/advance.js';
import type { BookedTask } from '../../video/book.js';
import { upstreamFormats } from '../../video/formats.js';
import { changeByPoll } from '../../video/polled.js';
import type { VideoTask } from '../../video/task.js';
import { noLines } from '../../wire/head.js';
import { type Answered, isFailure } from '../ask.js';
import type { WaitingClient } from '../attend.js';
import type { Asking } from '../call.js';
import { keyMark, markedKey } from '../key-mark.js';
import type { Services } from '../services.js';
import { secretOf, upstreamOf } from './answer.js';
import { changeTask } from './settle.js';

/** A client that asks how a task stands is not kept waiting for an upstream that does not say. */
const longestPollMs = 10_000;
const answerBytes = 4 * 1024 * 1024;

/**
 * Asks the upstream how a task stands, unless it was asked within the last second. When the upstream cannot be asked
 * or gives no sense, the task stays as it is known: the next poll may get further.
 */
export async function refreshed(
  services: Services,
  call: Asking,
  waiting: Pick<WaitingClient, 'ask'>,
  booked: BookedTask,
): Promise<VideoTask> {
  const { task } = booked;
  const upstream = upstreamOf(call, task);
  if (hasEnded(task) || task.upstream.id === null || upstream === null) return task;
  if (!(await services.book.claimPoll(task.id)) || call.accounted) return task;
  const upstreamFormat = upstreamFormats[task.upstream.format];
  const { timeouts } = call.running.snapshot;
  const apiKey = markedKey(upstream, task.upstream.credential);
  const answer = await waiting.ask({
    ...upstreamFormat.poll(task),
    upstream,
    protocol: 'video',
    apiKey,
    lines: noLines,
    target: null,
    maxBytes: answerBytes,
    attempt: null,
    once: false,
    deadlines: { ...timeouts, totalMs: Math.min(timeouts.totalMs, longestPollMs) },
  });
  const change = changeBy(call, answer, task, upstream);
  const { error } = call;
  if (isVendorAccountError(error))
    noteVendorAccountRefused(services, call, { upstream, model: task.upstream.model, apiKey }, error);
  return change === null ? task : ((await changeTask(services, booked, change)) ?? task);
}

/** @returns what the answer makes of the task, or null when it says nothing of it */
function changeBy(
  call: Asking,
  answer: Answered | UpstreamFailure,
  task: VideoTask,
  upstream: Upstream,
): ((task: VideoTask) => VideoTask) | null {
  try {
    if (isFailure(answer)) throw failureError(answer);
    call.answeredAt = performance.now();
    const { head, body, refusal } = answer;
    // It says nothing of the task, whatever it looks like.
    const told = refusal?.error ?? null;
    if (isVendorAccountError(told)) throw told;
    const polled = { status: head.status, body, isMaker: hasMakersKey(upstream, task) };
    const change = changeByPoll(task, polled, Date.now());
    if (change === null) throw statusError(head, body);
    const secret = secretOf(change(task).error, upstream.secrets);
    if (secret === null) return change;
    call.error = secret;
    return (known) => ({ ...change(known), error: { code: 'generation_failed', message: secret.message } });
  } catch (fault) {
    if (!(fault instanceof GatewayError)) throw fault;
    // For the log: the client gets the task as it is known.
    const isGood = !isFailure(answer) && answer.refusal === null;
    call.error = isGood ? toldError(fault, answer.body.toString('utf8'), upstream.secrets) : fault;
    return null;
  }
}

/** After a rotation of keys, the upstream may take the gateway for someone else. */
function hasMakersKey({ apiKeys }: Upstream, { upstream: { credential } }: VideoTask): boolean {
  return credential === null || apiKeys.some((key) => keyMark(key) === credential);
}
