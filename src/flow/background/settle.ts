import { performance } from 'node:perf_hooks';
import { noteVendorAccountRefused } from '../../attempts/attempts.js';
import type { Upstream } from '../../config/types.js';
import { idOfBeginning, idOfEvents } from '../../conversation/answer-id.js';
import { estimatedUsage, tokensOf } from '../../conversation/estimate-usage.js';
import { type Usage, UsageCheck, unknownTokens } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { budgetKeptMs } from '../../limits/pools.js';
import type { CallOutcome, CallRecord } from '../../metrics/call-record.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import {
  endOfResponse,
  type ResponseAction,
  type ResponseEnd,
  upstreamRequest,
} from '../../protocols/responses/by-id.js';
import type { AnswerWatch } from '../../stream/observe.js';
import { writtenIn } from '../../stream/streamed-text.js';
import { type BackgroundCall, backgroundId } from '../../usage/background-calls.js';
import { noLines } from '../../wire/head.js';
import { parseObject } from '../../wire/json.js';
import type { Call } from '../call.js';
import { expectedUsage } from '../limits/expected-usage.js';
import { type BegunResponse, costsOfTokens, factorOf } from '../record/consumption.js';
import type { Services } from '../services.js';
import { type CollectedRequest, gatewaySender, isFailure } from '../upstream/collect.js';
import { keyMark, markedKey } from '../upstream/key-mark.js';
import type { CollectAlone, Watched, WatchedWork } from './watch.js';

/*
 * A background response continues after the answer to its call. Its usage is only known from a later poll. Until then
 * the call keeps the reservations in its limits, based on the expected usage. Its ledger line and metrics are written
 * once the end is known: when a client requests the response, or when the gateway polls it on its own, as it polls
 * video tasks. The call's record in the store suffices for that, so any worker of any host can settle it, and one of
 * them does, once.
 */

/** A claimed settlement ends within this time; afterwards another process may do it. */
const claimMs = 10_000;
/** A response that has not ended by then is charged by the expected usage. */
const watchedMs = 24 * 60 * 60 * 1000;
/** How long an upstream may answer "not found" for a response that it has just started. */
const youngMs = 10_000;
const longestLookMs = 10_000;
const answerBytes = 32 * 1024 * 1024;

/**
 * Marks a call that is about to be sent as one that may continue after its answer.
 * @param apiKey key of the upstream
 * @param watch another watch on the beginning of the answer, or null
 * @returns the watch to use
 */
export function beginInBackground(call: Call, apiKey: string | null, watch: AnswerWatch | null): AnswerWatch {
  const begun: BegunResponse = { expected: expectedUsage(call), credential: keyMark(apiKey), id: null };
  call.begun = begun;
  return (piece, isStream) => {
    begun.id ??= isStream ? idOfEvents(piece, 'response') : idOfBeginning(piece);
    const isSeen = watch === null || watch(piece, isStream);
    return isSeen && begun.id !== null;
  };
}

/** Defers the settlement of a call until its end is known. @param record the record as of now */
export function settleLater(services: Services, call: Call, record: CallRecord): void {
  const { begun, target, model, limits } = call;
  if (begun?.id == null || target === null) return;
  const { expected } = begun;
  const streamed = call.usage?.output ?? 0;
  const usage = estimatedUsage(expected.input, Math.max(expected.output, streamed));
  const factor = factorOf(call);
  const background: BackgroundCall = {
    response: begun.id,
    upstream: target.upstream.name,
    upstreamModel: target.model,
    credential: begun.credential,
    at: Date.now(),
    reserved: limits?.reserved() ?? [],
    factor,
    streamed,
    record: {
      ...record,
      endsLater: false,
      outcome: 'incomplete',
      usage,
      units: 1,
      ...costsOfTokens(model?.price ?? null, target.cost, usage, factor),
    },
  };
  const work = services.background.add(background).then((isNoted) => {
    if (!isNoted) services.meter(background.record);
  });
  services.unattended.add(work);
}

/**
 * Settles a response of a key if the upstream's answer shows that it has ended. Never rejects.
 * @param response the whole response, as JSON text
 */
export async function settleShown(
  services: Services,
  keyId: string,
  id: string,
  response: Buffer,
): Promise<void> {
  try {
    const shown = shownBy(response);
    if (shown.end !== null) await settle(services, backgroundId(keyId, id), shown);
  } catch (fault) {
    // The store is unavailable, which its other users report; the watch tries again.
    if (!(fault instanceof GatewayError)) services.reportFault('promise', fault, null);
  }
}

/** Records how many output tokens of a response of a key its streams have shown, for an end that reports no usage. */
export function noteShown(services: Services, keyId: string, id: string, output: number): void {
  services.unattended.add(services.background.noteStreamed(backgroundId(keyId, id), output));
}

/**
 * Settles a response whose usage can no longer be known.
 * @param response its last known state, as JSON text; null if unknown
 * @throws {GatewayError} the store's error
 */
export function settleUnknown(
  services: Services,
  keyId: string,
  id: string,
  response: Buffer | null,
): Promise<void> {
  return settle(services, backgroundId(keyId, id), response === null ? notShown : shownBy(response));
}

/** A response as shown by its upstream. */
interface Shown {
  /** The whole response, as JSON text. */
  readonly response: Buffer;
  /** Null while it is in progress. */
  readonly end: ResponseEnd | null;
}

/** A response of which nothing is known. */
const notShown: Shown = { response: Buffer.alloc(0), end: null };

function shownBy(response: Buffer): Shown {
  return { response, end: endOfResponse(response) };
}

async function settle(services: Services, id: string, shown: Shown): Promise<void> {
  const { background, budgets } = services;
  if ((await background.find(id)) === null || !(await background.claim('end', id, claimMs))) return;
  // Read again: what a stream has shown may have been written since.
  const found = await background.find(id);
  if (found === null) return;
  const record = endedRecord(services, found, shown);
  // Budgets first, since they decide whether the next call is admitted.
  for (const { pool, limit, amount } of found.reserved) {
    const owed = record.costNanoUsd - amount;
    if (owed === 0) continue;
    await budgets.reserve(pool, { limit, least: 0, want: 0, owed, debt: record.id, ttlMs: budgetKeptMs });
  }
  await services.correct(record);
  await background.remove(id);
}

const outcomes: Readonly<Record<ResponseEnd['status'], CallOutcome>> = {
  completed: 'complete',
  incomplete: 'complete',
  failed: 'upstream_error',
  cancelled: 'incomplete',
};

function endedRecord(services: Services, found: BackgroundCall, shown: Shown): CallRecord {
  const { record, at, factor } = found;
  const now = performance.now();
  const ended = { ...record, endedAt: now, durationMs: record.durationMs + Math.max(0, Date.now() - at) };
  const expected = estimatedUsage(record.usage?.input ?? 0, record.usage?.output ?? 0);
  const { end } = shown;
  const model = services.running.snapshot.models.get(record.model ?? '');
  const reported = end?.usage ?? null;
  const check = new UsageCheck(model?.tokens ?? unknownTokens, expected.input);
  const usage = check.checked(reported) ?? unreportedUsage(shown, found, expected);
  if (check.implausible !== null)
    services.reportImplausible(null, {
      target: record.target ?? '',
      usage: check.implausible,
      seconds: 0,
    });
  if (usage === expected) return { ...ended, usage };
  const outcome = end === null ? record.outcome : outcomes[end.status];
  if (usage === null) return { ...ended, outcome, usage, units: 0, costNanoUsd: 0, paidNanoUsd: 0 };
  // Without the model in the config, its price is unknown.
  if (model === undefined) return { ...ended, outcome, usage };
  const { upstream, upstreamModel } = found;
  const target = model.targets.find(
    (each) => each.upstream.name === upstream && each.model === upstreamModel,
  );
  return { ...ended, outcome, usage, ...costsOfTokens(model.price, target?.cost ?? null, usage, factor) };
}

/**
 * The estimated usage of a response that does not report it: at least what its client has received. A failed response
 * has used nothing.
 * @param expected the usage expected when its call was admitted
 */
function unreportedUsage(
  { end, response }: Shown,
  { streamed }: BackgroundCall,
  expected: Usage,
): Usage | null {
  if (end?.status === 'failed') return null;
  const { input } = expected;
  const output = Math.max(streamed, tokensOf(writtenIn(parseObject(response.toString('utf8'))).weight));
  if (end === null) return output <= expected.output ? expected : estimatedUsage(input, output);
  if (end.status !== 'cancelled') return estimatedUsage(input, output);
  return { input, output, cached: 0, cacheWritten: 0, reasoning: 0, partial: true };
}

/**
 * The background responses, for the watch.
 * @param mayFindAny false for a store that was never used, which a read would create
 */
export function watchedResponses(services: Services, mayFindAny: () => boolean): Watched {
  const { background } = services;
  return {
    mayBeAny: () => background.mayBeAny() && mayFindAny(),
    page: (limit, from) => background.page(limit, from),
    find: async (id) => {
      const found = await background.find(id);
      return found === null ? null : workOn(services, id, found);
    },
  };
}

function workOn(services: Services, id: string, found: BackgroundCall): WatchedWork {
  const ageMs = Date.now() - found.at;
  const upstream = services.running.snapshot.upstreams.get(found.upstream);
  if (upstream === undefined)
    return {
      ageMs,
      upstream: null,
      claim: (ms) => services.background.claim('watch', id, ms),
      // The upstream is not in this config. Another host's config may still have it.
      work: async () => (ageMs < watchedMs ? undefined : settle(services, id, notShown)),
    };
  return {
    ageMs,
    upstream: upstream.name,
    claim: (ms) => services.background.claim('watch', id, ms),
    work: (collect) => look(services, { id, found, upstream, ageMs }, collect),
  };
}

interface Looked {
  readonly id: string;
  readonly found: BackgroundCall;
  readonly upstream: Upstream;
  readonly ageMs: number;
}

/** Polls a response, and settles it if it has ended, or has not ended within a day. */
async function look(
  services: Services,
  { id, found, upstream, ageMs }: Looked,
  collect: CollectAlone,
): Promise<void> {
  const sender = gatewaySender(services, found.record.model ?? '');
  const request = showRequest(services, found, upstream);
  const answer = await collect(sender, request);
  // After a day it is still polled once: no process may have been running to do it before.
  const isLast = ageMs >= watchedMs;
  if (!isFailure(answer)) {
    const { head, body, refusal } = answer;
    const told = refusal?.error ?? null;
    if (isVendorAccountError(told)) {
      const { apiKey } = request;
      noteVendorAccountRefused(services, sender, { upstream, model: found.upstreamModel, apiKey }, told);
    } else if (head.status < 300) {
      const shown = shownBy(body);
      if (isLast || shown.end !== null) await settle(services, id, shown);
      return;
    } else if (head.status === 404 && ageMs >= youngMs) {
      await settle(services, id, notShown);
      return;
    }
  }
  if (isLast) await settle(services, id, notShown);
}

function showRequest(services: Services, found: BackgroundCall, upstream: Upstream): CollectedRequest {
  const { timeouts } = services.running.snapshot;
  return responseRequest({
    upstream,
    apiKey: markedKey(upstream, found.credential),
    id: found.response,
    action: 'show',
    query: '',
    lines: noLines,
    deadlines: { ...timeouts, totalMs: Math.min(timeouts.totalMs, longestLookMs) },
  });
}

interface ResponseRequest extends Pick<CollectedRequest, 'apiKey' | 'lines' | 'deadlines'> {
  readonly upstream: Upstream;
  /** The upstream's own id. */
  readonly id: string;
  readonly action: ResponseAction;
  /** Query of the client's request; empty for none. */
  readonly query: string;
}

/** The request to an upstream about a response that it holds. */
export function responseRequest({ id, action, query, ...request }: ResponseRequest): CollectedRequest {
  return {
    ...upstreamRequest(id, action, query),
    ...request,
    protocol: 'responses',
    contentType: null,
    target: null,
    body: [],
    maxBytes: answerBytes,
    attempt: null,
    hasEffects: action === 'cancel',
  };
}
