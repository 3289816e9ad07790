import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { noteVendorAccountRefused } from '../../attempts/attempts.js';
import { failureError, statusError } from '../../attempts/told-error.js';
import type { Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { isVendorAccountError, toldError } from '../../protocols/error-formats/vendor-account.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { changeByPoll, hasEnded } from '../../video/advance.js';
import type { BookedTask } from '../../video/book.js';
import { upstreamFormats } from '../../video/formats.js';
import type { VideoTask } from '../../video/task.js';
import { expiryOf } from '../../video/url-expiry.js';
import { noLines } from '../../wire/head.js';
import type { Watched, WatchedWork } from '../background/watch.js';
import type { Asking } from '../call.js';
import type { Services } from '../services.js';
import {
  type Answered,
  type AskUpstream,
  askingAbout,
  type CollectedRequest,
  isFailure,
} from '../upstream/ask.js';
import { keyMark, markedKey } from '../upstream/key-mark.js';
import { secretOf, upstreamOf } from './answer.js';
import { changeTask } from './settle.js';

/** A client that asks how a task stands is not kept waiting for an upstream that does not say. */
const longestPollMs = 10_000;
/** An upstream is asked no more often about one task, whoever asks. */
const pollEveryMs = 1000;
const answerBytes = 4 * 1024 * 1024;
/** Whoever waits for what another one is told looks so often. */
const renewalEveryMs = 250;

/** What is good for less than this is renewed before anybody is told it, or it is asked for. */
const soonMs = 5 * 60 * 1000;
/** An upstream may have no other address, or sign all of them for less. */
const renewedEveryMs = 60_000;

/**
 * Asks the upstream how a task stands, unless it was asked within the last second, and where its video is, when the
 * address that it has told is good for a short time only. When the upstream cannot be asked or gives no sense, the task
 * stays as it is known: the next poll may get further.
 */
export async function refreshed(
  services: Services,
  call: Asking,
  booked: BookedTask,
  ask: AskUpstream,
): Promise<VideoTask> {
  const { task } = booked;
  const upstream = upstreamOf(call, task);
  if (task.upstream.id === null || upstream === null) return task;
  if (hasEnded(task)) return expiresSoon(task) ? renewed(services, call, task, ask) : task;
  if (!(await services.book.claim('poll', task.id, pollEveryMs)) || call.accounted) return task;
  const request = pollRequest(call, task, upstream);
  const answer = await ask(request);
  const change = changeBy(call, answer, task, upstream);
  noteAccount(services, call, task, request);
  return change === null ? task : ((await changeTask(services, booked, change)) ?? task);
}

function expiresSoon({ result }: VideoTask): boolean {
  const at = result === null || result.url === null ? null : expiryOf(result.url);
  return at !== null && at - Date.now() < soonMs;
}

async function renewed(
  services: Services,
  call: Asking,
  task: VideoTask,
  ask: AskUpstream,
): Promise<VideoTask> {
  const { result } = task;
  if (result === null || result.url === null) return task;
  if (!(await services.book.claim('renew', task.id, renewedEveryMs))) return task;
  const url = await renewedUrl(services, call, { taskId: task.id, url: result.url }, ask);
  return url === null ? task : { ...task, result: { ...result, url } };
}

/**
 * Asks the upstream of a finished task where its video is now: addresses are signed for a while. Of several that ask at
 * once, one asks the upstream and the others take what it was told.
 * @param url that is of no use any more
 * @returns another one, which stands in the task's record then; null where there is none
 */
export async function renewedUrl(
  services: Services,
  call: Asking,
  asked: { readonly taskId: string; readonly url: string },
  ask: AskUpstream,
): Promise<string | null> {
  const until = performance.now() + longestPollMs;
  while (!call.accounted && performance.now() < until) {
    const booked = await services.book.find(asked.taskId);
    const known = booked?.task.result?.url ?? null;
    if (booked === null || known !== asked.url) return known;
    const upstream = upstreamOf(call, booked.task);
    if (upstream === null) return null;
    if (await services.book.claim('poll', asked.taskId, pollEveryMs))
      return renew(services, call, { booked, upstream }, ask);
    await sleep(renewalEveryMs);
  }
  return null;
}

async function renew(
  services: Services,
  call: Asking,
  { booked, upstream }: { readonly booked: BookedTask; readonly upstream: Upstream },
  ask: AskUpstream,
): Promise<string | null> {
  const { task } = booked;
  const request = pollRequest(call, task, upstream);
  const answer = await ask(request);
  const url = urlIn(call, answer, task, upstream);
  noteAccount(services, call, task, request);
  if (url === null || url === task.result?.url) return null;
  await services.book.update(booked, (known) =>
    known.result === null ? known : { ...known, result: { ...known.result, url } },
  );
  return url;
}

/** @returns where an answer says that the video of a finished task is; null where it does not say */
function urlIn(
  call: Asking,
  answer: Answered | UpstreamFailure,
  task: VideoTask,
  upstream: Upstream,
): string | null {
  // Changed by what its upstream says as long as it has not ended.
  const open: VideoTask = { ...task, state: 'in_progress', result: null };
  return changeBy(call, answer, open, upstream)?.(open).result?.url ?? null;
}

function pollRequest(call: Asking, task: VideoTask, upstream: Upstream): CollectedRequest {
  const { timeouts } = call.running.snapshot;
  return {
    ...upstreamFormats[task.upstream.format].poll(task),
    upstream,
    protocol: 'video',
    apiKey: markedKey(upstream, task.upstream.credential),
    lines: noLines,
    target: null,
    maxBytes: answerBytes,
    attempt: null,
    hasEffects: false,
    deadlines: { ...timeouts, totalMs: Math.min(timeouts.totalMs, longestPollMs) },
  };
}

/** Notes where the call has come to know that the upstream does not accept our account. */
function noteAccount(
  services: Services,
  call: Asking,
  { upstream: { model } }: VideoTask,
  { upstream, apiKey }: CollectedRequest,
): void {
  if (isVendorAccountError(call.error))
    noteVendorAccountRefused(services, call, { upstream, model, apiKey }, call.error);
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

/** A task that has not ended by then is left to its clients: what it was charged stands. */
const watchedMs = 24 * 60 * 60 * 1000;

/** The video tasks that upstreams have taken. */
export function watchedTasks(services: Services): Watched {
  const { book } = services;
  return {
    mayBeAny: () => hasVideo(services),
    page: (limit, from) => book.underWay(limit, from),
    find: async (id) => {
      const booked = await book.find(id);
      const work = booked === null ? null : workOn(services, booked);
      if (work === null) await book.unwatch(id);
      return work;
    },
  };
}

/** @returns null for a task that needs nothing any more, or is too old */
function workOn(services: Services, booked: BookedTask): WatchedWork | null {
  const { task } = booked;
  const ageMs = Date.now() - task.createdAt;
  if (ageMs >= watchedMs) return null;
  if (!hasEnded(task))
    return {
      ageMs,
      upstream: task.upstream.name,
      claim: (ms) => services.book.claim('watch', task.id, ms),
      work: async (ask) => {
        const asking = askingAbout(services, task.model);
        await refreshed(services, asking, booked, (request) => ask(asking, request));
      },
    };
  if (task.state !== 'completed' || services.running.snapshot.videos === null) return null;
  return {
    ageMs,
    upstream: null,
    // Who wrote its end may not have heard that it did, or was killed before it had the video.
    claim: async () => true,
    work: async () => services.keepVideo(task),
  };
}

function hasVideo({ running }: Services): boolean {
  for (const { protocols } of running.snapshot.models.values()) if (protocols.has('video')) return true;
  return false;
}
