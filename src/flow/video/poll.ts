import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { noteVendorAccountRefused } from '../../attempts/attempts.js';
import { failureError, statusError } from '../../attempts/reported-error.js';
import type { Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { errorToReport, isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { changeByPoll, hasEnded } from '../../video/advance.js';
import type { BookedTask } from '../../video/book.js';
import { upstreamFormats } from '../../video/formats.js';
import type { VideoResult, VideoTask } from '../../video/task.js';
import { expiryOf } from '../../video/url-expiry.js';
import { noLines } from '../../wire/head.js';
import type { Watched, WatchedWork } from '../background/watch.js';
import type { RequestSender } from '../call.js';
import type { Services } from '../services.js';
import {
  type CollectAnswer,
  type CollectedAnswer,
  type CollectedRequest,
  gatewaySender,
  isFailure,
} from '../upstream/collect.js';
import { keyMark, markedKey } from '../upstream/key-mark.js';
import { secretOf, upstreamOf } from './answer.js';
import { changeTask } from './settle.js';

/** Timeout of a poll: a client that requests a task's status does not wait for a slow upstream. */
const longestPollMs = 10_000;
/** Minimum interval between polls of one task, across all callers. */
const pollEveryMs = 1000;
const answerBytes = 4 * 1024 * 1024;
/** Interval at which a caller checks for the URL that another caller's poll brings. */
const renewalCheckMs = 250;

/** A URL that expires within this time is renewed before a client sees it or it is fetched. */
const renewBeforeMs = 5 * 60 * 1000;
/** Minimum interval between renewals: an upstream may have no other URL, or sign all of them for less time. */
const minRenewalIntervalMs = 60_000;

/**
 * Polls the upstream for a task's status, unless it was polled within the last second. For a task that has ended, polls
 * for a new URL if the known one expires soon. Returns the task unchanged when the poll fails or cannot be read: a later
 * poll may succeed.
 */
export async function refreshed(
  services: Services,
  call: RequestSender,
  booked: BookedTask,
  collect: CollectAnswer,
): Promise<VideoTask> {
  const { task } = booked;
  const upstream = upstreamOf(call, task);
  if (task.upstream.id === null || upstream === null) return task;
  if (hasEnded(task)) return expiresSoon(task) ? renewed(services, call, task, collect) : task;
  if (!(await services.book.claim('poll', task.id, pollEveryMs)) || call.accounted) return task;
  const request = pollRequest(call, task, upstream);
  const answer = await collect(request);
  const change = changeBy(call, answer, task, upstream);
  recordRefusedAccount(services, call, task, request);
  return change === null ? task : ((await changeTask(services, booked, change)) ?? task);
}

function expiresSoon({ result }: VideoTask): boolean {
  const at = result === null || result.url === null ? null : expiryOf(result.url);
  return at !== null && at - Date.now() < renewBeforeMs;
}

async function renewed(
  services: Services,
  call: RequestSender,
  task: VideoTask,
  collect: CollectAnswer,
): Promise<VideoTask> {
  const { result } = task;
  if (result === null || result.url === null) return task;
  if (!(await services.book.claim('renew', task.id, minRenewalIntervalMs))) return task;
  const url = await renewedUrl(services, call, { taskId: task.id, url: result.url }, collect);
  return url === null ? task : ((await services.book.find(task.id))?.task ?? task);
}

/**
 * Polls the upstream of a finished task for a new URL of its video, since signed URLs expire. Of several concurrent
 * callers, one polls and the others use its result.
 * @param asked the task, and its URL that no longer works
 * @returns the new URL, which is then in the task's record; null if there is none
 */
export async function renewedUrl(
  services: Services,
  call: RequestSender,
  asked: { readonly taskId: string; readonly url: string },
  collect: CollectAnswer,
): Promise<string | null> {
  const until = performance.now() + longestPollMs;
  while (!call.accounted && performance.now() < until) {
    const booked = await services.book.find(asked.taskId);
    const known = booked?.task.result?.url ?? null;
    if (booked === null || known !== asked.url) return known;
    const upstream = upstreamOf(call, booked.task);
    if (upstream === null) return null;
    if (await services.book.claim('poll', asked.taskId, pollEveryMs))
      return renew(services, call, { booked, upstream }, collect);
    await sleep(renewalCheckMs);
  }
  return null;
}

async function renew(
  services: Services,
  call: RequestSender,
  { booked, upstream }: { readonly booked: BookedTask; readonly upstream: Upstream },
  collect: CollectAnswer,
): Promise<string | null> {
  const { task } = booked;
  const request = pollRequest(call, task, upstream);
  const answer = await collect(request);
  const told = resultIn(call, answer, task, upstream);
  recordRefusedAccount(services, call, task, request);
  const url = told?.url ?? null;
  if (told === null || url === null || url === task.result?.url) return null;
  await services.book.update(booked, (known) =>
    known.result === null ? known : { ...known, result: withUrlsOf(known.result, told) },
  );
  return url;
}

/** A result with all URLs of another: those of one answer expire together. */
function withUrlsOf(result: VideoResult, { url, watermarkUrl, others }: VideoResult): VideoResult {
  const { watermarkUrl: _, others: __, ...rest } = result;
  return {
    ...rest,
    url,
    ...(watermarkUrl === undefined ? {} : { watermarkUrl }),
    ...(others === undefined ? {} : { others }),
  };
}

/** @returns the result of a finished task in an answer, or null */
function resultIn(
  call: RequestSender,
  answer: CollectedAnswer | UpstreamFailure,
  task: VideoTask,
  upstream: Upstream,
): VideoResult | null {
  // A poll changes only a task that has not ended.
  const open: VideoTask = { ...task, state: 'in_progress', result: null };
  return changeBy(call, answer, open, upstream)?.(open).result ?? null;
}

function pollRequest(call: RequestSender, task: VideoTask, upstream: Upstream): CollectedRequest {
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

/** Records that the upstream refused our account, if the call's error says so. */
function recordRefusedAccount(
  services: Services,
  call: RequestSender,
  { upstream: { model } }: VideoTask,
  { upstream, apiKey }: CollectedRequest,
): void {
  if (isVendorAccountError(call.error))
    noteVendorAccountRefused(services, call, { upstream, model, apiKey }, call.error);
}

/** @returns the change that the answer makes to the task, or null if it contains none */
function changeBy(
  call: RequestSender,
  answer: CollectedAnswer | UpstreamFailure,
  task: VideoTask,
  upstream: Upstream,
): ((task: VideoTask) => VideoTask) | null {
  try {
    if (isFailure(answer)) throw failureError(answer);
    call.answeredAt = performance.now();
    const { head, body, refusal } = answer;
    // An error about our account says nothing about the task.
    const refused = refusal?.error ?? null;
    if (isVendorAccountError(refused)) throw refused;
    const polled = { status: head.status, body, isMaker: hasMakersKey(upstream, task) };
    const change = changeByPoll(task, polled, Date.now());
    if (change === null) throw statusError(head, body);
    const secret = secretOf(change(task).error, upstream.secrets);
    if (secret === null) return change;
    call.error = secret;
    return (known) => ({ ...change(known), error: { code: 'generation_failed', message: secret.message } });
  } catch (fault) {
    if (!(fault instanceof GatewayError)) throw fault;
    // For the log only: the client gets the task unchanged.
    const isGood = !isFailure(answer) && answer.refusal === null;
    call.error = isGood ? errorToReport(fault, answer.body.toString('utf8'), upstream.secrets) : fault;
    return null;
  }
}

/** Whether the upstream still has the key that created the task: after a rotation it may not find the task. */
function hasMakersKey({ apiKeys }: Upstream, { upstream: { credential } }: VideoTask): boolean {
  return credential === null || apiKeys.some((key) => keyMark(key) === credential);
}

/** A task older than this is polled only for its clients, and its charge stands. */
const watchedMs = 24 * 60 * 60 * 1000;

/** The video tasks that upstreams have accepted, for the watch. */
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

/** @returns null for a task that needs no more work or is too old */
function workOn(services: Services, booked: BookedTask): WatchedWork | null {
  const { task } = booked;
  const ageMs = Date.now() - task.createdAt;
  if (ageMs >= watchedMs) return null;
  if (!hasEnded(task))
    return {
      ageMs,
      upstream: task.upstream.name,
      claim: (ms) => services.book.claim('watch', task.id, ms),
      work: async (collect) => {
        const sender = gatewaySender(services, task.model);
        await refreshed(services, sender, booked, (request) => collect(sender, request));
      },
    };
  if (task.state !== 'completed' || services.running.snapshot.videos === null) return null;
  return {
    ageMs,
    upstream: null,
    // The process that recorded its end may have missed the confirmation, or was killed before it had the video.
    claim: async () => true,
    work: async () => services.keepVideo(task),
  };
}

function hasVideo({ running }: Services): boolean {
  for (const { protocols } of running.snapshot.models.values()) if (protocols.has('video')) return true;
  return false;
}
