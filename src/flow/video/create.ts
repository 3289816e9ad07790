import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Attempt, type AttemptAdapter, type AttemptPlan } from '../../attempts/attempts.js';
import { failureError, statusError } from '../../attempts/reported-error.js';
import { type FailedAttempt, provesNotExecuted } from '../../attempts/verdict.js';
import type { Model, Price, Target } from '../../config/types.js';
import { LeftOut } from '../../conversation/left-out.js';
import { GatewayError, unrepeatable } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { dayMs } from '../../usage/budget.js';
import { costOf } from '../../usage/cost.js';
import {
  chargedSeconds,
  failedTask,
  hasEnded,
  newTask,
  submitted,
  usualSeconds,
} from '../../video/advance.js';
import { type OnceRequest, submissionHere } from '../../video/book.js';
import { clientFormats, upstreamFormatOf, upstreamFormats } from '../../video/formats.js';
import { fingerprintOf, requireMetered, wrongLength } from '../../video/request.js';
import { resolutionAt, resolutionOf } from '../../video/shape.js';
import type { TaskCharge, VideoCall, VideoRequest, VideoTask } from '../../video/task.js';
import { leftOutMembers } from '../../video/unsupported.js';
import { headerLine, joinLines } from '../../wire/head.js';
import { answerError } from '../answer/content.js';
import { ownLines, passedLines, pathLine, timingLine } from '../answer/lines.js';
import { type AuthenticatedCall, type Call, deadlinesLeft, type ResolvedCall } from '../call.js';
import { admitResolved } from '../limits/admit.js';
import { detachMemory, takeMemory } from '../memory-budget.js';
import { account } from '../record/account.js';
import { costOfCall, factorOf, paidForCall } from '../record/consumption.js';
import { findModel, routeCall } from '../resolve.js';
import type { Services } from '../services.js';
import { type CollectedAnswer, collectAnswer, failedRequest, isFailure } from '../upstream/collect.js';
import { forwardedLines, idempotencyMark } from '../upstream/head.js';
import { keyMark } from '../upstream/key-mark.js';
import { answerAsync, answerJson } from '../upstream/waiting-client.js';
import { showContext, shownTask } from './answer.js';
import {
  type Destination,
  errorIn,
  formatOf,
  isMade,
  isNativeRefusal,
  isRefusal,
  readCreated,
  statusOf,
  translatedError,
} from './create-answer.js';
import { onEnded } from './settle.js';

const answerBytes = 4 * 1024 * 1024;
const nothing = Buffer.alloc(0);
/** A body is in memory as received, parsed, and as sent to the upstream. */
const bodyCopies = 3;
/** A submission may take as long as any call, and then this long to record its end. */
const marginMs = 60_000;
/** How long, and at which interval, recording the end of a submission is retried while the store fails. */
const recordMs = 5000;
const recordRetryMs = 200;

/**
 * Creates a task: records that it is about to be submitted, sends it to an upstream, records the outcome, and only
 * then answers. A client that disconnects does not stop this, since the upstream may have begun.
 */
export function createTask(services: Services, call: AuthenticatedCall, request: VideoRequest): void {
  requireMetered(request);
  const resolved = findModel(call, 'video', request.model);
  requireServable(request, resolved.model);
  call.units = request.count ?? 1;
  call.mediaSeconds = call.units * chargedSeconds(request.seconds ?? usualLength(resolved.model));
  call.made = madeOf(dearestResolution(request, resolved.model));
  call.validatedAt = performance.now();
  admitResolved(services, resolved, () => takeTask(services, resolved, request));
}

/**
 * Refuses a request that no target can serve, before the call takes anything of its key's limits. A length that is not
 * a number may mean something to the upstream, but is refused if the model is priced by length.
 * @throws {GatewayError} of status 400, naming the client's member
 */
function requireServable(request: VideoRequest, model: Model): void {
  const { fault, unreadLength } = request;
  if (unreadLength !== null && isPaidByLength(model)) throw wrongLength(unreadLength);
  if (fault !== null && targetsFor(request, model).length === 0) throw fault;
}

function isPaidByLength({ price }: Model): boolean {
  return price !== null && (price.rates.perSecond > 0 || price.seconds.some(({ usd }) => usd > 0));
}

/**
 * The resolution that costs most of those that targets may be told, in words of their own formats: a budget that
 * reserved another could be overdrawn by as many calls as are in flight.
 */
function dearestResolution(request: VideoRequest, model: Model): string | null {
  const { price } = model;
  if (price === null || price.seconds.length === 0) return resolutionOf(request);
  const targets = targetsFor(request, model);
  let dearest: string | null = null;
  let most = -1;
  for (const format of new Set(targets.map(({ upstream }) => upstreamFormatOf(upstream.kind)))) {
    try {
      const resolution = resolutionAt(request, format);
      const cost = costOf(price, { usage: null, seconds: 1, units: 0, made: madeOf(resolution) });
      if (cost > most) [dearest, most] = [resolution, cost];
    } catch (fault) {
      // A format that cannot express the request gets no task.
      if (!(fault instanceof GatewayError)) throw fault;
    }
  }
  return dearest;
}

/** Default seconds of a video, by its model's first target: used if the request has no length, or one not a number. */
function usualLength({ targets: [target] }: Model): number {
  return target === undefined ? 0 : usualSeconds[upstreamFormatOf(target.upstream.kind)];
}

/** The targets that can serve a task: those of its own format only, if no other format can express the request. */
function targetsFor({ format, fault }: VideoRequest, { targets }: Model): readonly Target[] {
  return fault === null
    ? targets
    : targets.filter(({ upstream }) => upstreamFormatOf(upstream.kind) === format);
}

function takeTask(services: Services, call: ResolvedCall, request: VideoRequest): void {
  let plan: AttemptPlan;
  try {
    plan = routeCall(services, call, targetsFor(request, call.model));
  } catch (fault) {
    const once = onceOnly(call, request);
    if (once === null || !(fault instanceof GatewayError) || fault.kind !== 'overloaded') throw fault;
    // A repeated request is answered without an upstream.
    answerAsync(services, call, async () => {
      const earlier = await services.book.known(once);
      if (earlier === null) throw fault;
      await answerEarlier(services, call, request, earlier);
    });
    return;
  }
  openTask(services, call, request, plan);
}

function openTask(services: Services, call: Call, request: VideoRequest, plan: AttemptPlan): void {
  // Parts of the body are sent even after the client disconnects, so the buffer and its memory outlive the call.
  call.target = plan.target;
  takeCopies(services, call);
  const giveBack = detachMemory(services, call);
  const submitting = new Submitting(services, call, request, plan);
  services.unattended.add(submitting.run().finally(giveBack));
}

/** Takes memory for the copies, at most what the key's budget leaves: a body that fits alone can always be served. */
function takeCopies(services: Services, call: Call): void {
  const { bufferedBytesPerKey } = call.running.snapshot.limits;
  takeMemory(
    services,
    call,
    Math.min((bodyCopies - 1) * call.heldBytes, bufferedBytesPerKey - call.heldBytes),
  );
}

/**
 * Builds the request for the current target. Done per target, not up front: a request may hold large images.
 * @throws {GatewayError} when the target cannot serve the request
 */
function destinationAt({ target, apiKey }: AttemptPlan, request: VideoRequest, id: string): Destination {
  const upstreamFormat = upstreamFormats[upstreamFormatOf(target.upstream.kind)];
  return {
    target,
    upstreamFormat,
    request: upstreamFormat.create(request, target.model, id),
    apiKey,
  };
}

function taskOf(call: Call, request: VideoRequest, id: string, destination: Destination): VideoTask {
  const { key, running } = call;
  return newTask({
    id,
    keyId: key?.id ?? '',
    groups: key?.groups ?? [],
    request,
    upstream: upstreamPart(destination),
    now: Date.now(),
    ttlMs: running.snapshot.store.taskDays * dayMs,
  });
}

function upstreamPart({ target, apiKey }: Destination): Omit<VideoTask['upstream'], 'id'> {
  const { name, kind } = target.upstream;
  return { name, format: upstreamFormatOf(kind), model: target.model, credential: keyMark(apiKey) };
}

/** Identifies a request that its client marked with an idempotency key; null without one. */
function onceOnly(call: Call, request: VideoRequest): OnceRequest | null {
  const mark = idempotencyMark(call);
  if (mark === null) return null;
  return { mark, fingerprint: fingerprintOf(request) };
}

/** Answers a repeated request with the task of the first one. */
async function answerEarlier(
  services: Services,
  call: Call,
  request: VideoRequest,
  id: string,
): Promise<void> {
  const booked = await services.book.find(id);
  if (booked === null || booked.task.state === 'submitting') {
    throw new GatewayError(
      'conflict',
      'A request with this idempotency key is still in progress: try again shortly.',
      { retryAfter: 1 },
    );
  }
  answerJson(
    services,
    call,
    200,
    clientFormats[request.format].created(shownTask(call, booked.task), showContext(call, id)),
  );
}

/** A submission sent to an upstream, and its answer. */
interface Answered {
  readonly destination: Destination;
  readonly task: VideoTask;
  readonly answer: CollectedAnswer | UpstreamFailure;
}

/**
 * Submits one task, to one target after another until one accepts it. A client that disconnects does not end this, so
 * the call is not settled then either: its cost is known, and its slot is freed, once the submission has ended.
 */
class Submitting implements AttemptAdapter, ExchangeListener {
  readonly #services: Services;
  readonly #call: Call;
  readonly #request: VideoRequest;
  readonly #plan: AttemptPlan;
  readonly #once: OnceRequest | null;
  readonly #id = `video_${randomBytes(16).toString('hex')}`;
  /** The latest attempt. */
  #attempt: Attempt | null = null;
  /** The latest submission that failed in a way that permits another target. */
  #failed: Answered | null = null;
  /** The client was answered, or never will be. */
  #isOver = false;
  #onOver: () => void = () => {};

  constructor(services: Services, call: Call, request: VideoRequest, plan: AttemptPlan) {
    this.#services = services;
    this.#call = call;
    this.#request = request;
    this.#plan = plan;
    this.#once = onceOnly(call, request);
    call.exchange.listener = this;
  }

  /** Resolves when the client was answered and the task's outcome is in the book; never rejects. */
  run(): Promise<void> {
    return new Promise((resolve) => {
      this.#onOver = resolve;
      this.#plan.start(this);
    });
  }

  attempt(): void {
    const destination = destinationAt(this.#plan, this.#request, this.#id);
    this.#call.target = destination.target;
    this.#call.made = madeOf(resolutionAt(this.#request, upstreamFormatOf(destination.target.upstream.kind)));
    this.#endAfter(this.#submit(destination));
  }

  onNoneLeft(fault: unknown): void {
    this.#endAfter(this.#failed === null ? Promise.reject(fault) : this.#conclude(this.#failed));
  }

  onClientGone(): void {
    if (this.#isOver) account(this.#services, this.#call, 'client_gone');
  }

  onDrained(): void {
    account(this.#services, this.#call, 'complete');
  }

  /** @param step resolves to whether the call ends with it */
  #endAfter(step: Promise<boolean>): void {
    step.then(
      (isOver) => {
        if (isOver) this.#end();
      },
      (fault: unknown) => {
        if (this.#call.exchange.alive) this.#call.onFault('promise', fault);
        else this.#recordUnanswered(fault);
        this.#end();
      },
    );
  }

  /** Records the fault of a call whose client has disconnected. */
  #recordUnanswered(fault: unknown): void {
    if (fault instanceof GatewayError) this.#call.error = fault;
    else this.#services.reportFault('promise', fault, this.#call);
  }

  #end(): void {
    this.#isOver = true;
    if (!this.#call.exchange.alive) account(this.#services, this.#call, 'client_gone');
    this.#onOver();
  }

  async #submit(destination: Destination): Promise<boolean> {
    const task = await this.#recordSubmitting(destination);
    if (task === null) return true;
    const answer = await this.#orForget(task, () => this.#send(destination));
    const failed = this.#failureOf(destination, answer);
    if (failed === null || !this.#plan.planNext(failed)) return this.#conclude({ destination, task, answer });
    this.#failed = { destination, task, answer };
    this.#plan.beginPlanned(null);
    return false;
  }

  /** @returns the task as recorded in the book, or null if the request was a repeat, which is then answered */
  async #recordSubmitting(destination: Destination): Promise<VideoTask | null> {
    const call = this.#call;
    if (this.#failed !== null) {
      const task = { ...this.#failed.task, upstream: { ...upstreamPart(destination), id: null } };
      await this.#orForget(task, () => this.#services.book.reopen(task));
      return task;
    }
    const task = taskOf(call, this.#request, this.#id, destination);
    call.mediaSeconds = call.units * chargedSeconds(Number(task.seconds) || 0);
    const submission = submissionHere(this.#id, call.running.snapshot.timeouts.totalMs + marginMs);
    const earlier = await this.#services.book.open(task, submission, this.#once);
    if (earlier === null) return task;
    await answerEarlier(this.#services, call, this.#request, earlier);
    return null;
  }

  /** Records the upstream's answer in the book and answers the client; no further target is tried. */
  async #conclude({ destination, task, answer }: Answered): Promise<boolean> {
    if (isFailure(answer)) await this.#onFailure(task, answer);
    else await this.#onAnswer(destination, task, answer);
    return true;
  }

  /** How a submission failed; null if the upstream has created the task or may have. */
  #failureOf(destination: Destination, answer: CollectedAnswer | UpstreamFailure): FailedAttempt | null {
    if (!isMade(answer)) return failedRequest(answer);
    const error = errorIn(destination, answer);
    const status = error === null ? null : statusOf(error);
    if (error === null || status === null) return null;
    this.#attempt?.endedAs(status);
    if (isVendorAccountError(error)) this.#attempt?.report(error);
    return { reason: status, bytesSent: true, replayable: true, hasEffects: true, sentMs: answer.sentMs };
  }

  /** Runs a step. If it throws, no upstream has the task: the store has rejected it, or the request cannot be written. */
  async #orForget<Result>(task: VideoTask, step: () => Promise<Result>): Promise<Result> {
    try {
      return await step();
    } catch (fault) {
      await this.#forgetTask(task);
      throw fault;
    }
  }

  #send(destination: Destination): Promise<CollectedAnswer | UpstreamFailure> {
    const { target, upstreamFormat, request, apiKey } = destination;
    const call = this.#call;
    const format = upstreamFormatOf(target.upstream.kind);
    call.gatewayPath = format === this.#request.format ? ownPath(this.#request, request) : 'translated';
    call.leftOut = new LeftOut(leftOutMembers(this.#request, format, upstreamFormat.lacks)).names;
    const forwarded = forwardedLines(call, target, 'video');
    this.#attempt = new Attempt(this.#services, this.#plan);
    return collectAnswer(
      this.#services,
      call,
      {
        ...request,
        upstream: target.upstream,
        protocol: 'video',
        apiKey,
        lines: joinLines(forwarded, headerLine('idempotency-key', this.#once?.mark ?? this.#id)),
        target,
        maxBytes: answerBytes,
        deadlines: deadlinesLeft(call),
        attempt: this.#attempt,
        hasEffects: true,
      },
      { cancel: () => {} },
    );
  }

  async #onAnswer(destination: Destination, task: VideoTask, answer: CollectedAnswer): Promise<void> {
    const call = this.#call;
    call.answeredAt = performance.now();
    const { head, body } = answer;
    if (head.status >= 300) {
      this.#attempt?.failed('unusable_answer', true);
      const isClear = provesNotExecuted(head.status, answer.sentMs);
      await (isClear ? this.#forgetTask(task) : this.#recordUnknown(task));
      this.#refuseWith(destination, answer, !isClear);
      return;
    }
    let made: VideoTask;
    try {
      const unreadable = answerError(head, false);
      if (unreadable !== null)
        throw new GatewayError(unreadable.kind, unreadable.message, { unrepeatable: true });
      made = submitted(task, readCreated(destination, body), Date.now());
      // The task is charged even if its client disconnected before the answer.
      call.isServed = true;
      made = { ...made, charge: chargeOf(call) };
      this.#attempt?.succeeded();
    } catch (fault) {
      // A refusal inside a success status, or an unreadable answer, after which the task may exist.
      const isClear = fault instanceof GatewayError && isRefusal(fault, answer.sentMs);
      if (isClear) this.#attempt?.succeeded();
      else this.#attempt?.failed('unusable_answer', true);
      await (isClear ? this.#forgetTask(task) : this.#recordUnknown(task));
      if (
        isClear &&
        this.#request.format === formatOf(destination) &&
        isNativeRefusal(destination, body, fault)
      ) {
        this.#relayRefusal(answer, fault);
        return;
      }
      throw isClear || !(fault instanceof GatewayError) ? fault : unrepeatable(fault);
    }
    // First, so that a task in the book always has its call's ledger line, too, even if a process is killed.
    await this.#services.openCalls.keep(call);
    await this.#recordSubmission(made);
    if (hasEnded(made)) onEnded(this.#services, made);
    const { format } = this.#request;
    answerJson(
      this.#services,
      call,
      200,
      clientFormats[format].created(shownTask(call, made), showContext(call, made.id)),
    );
  }

  /** Relays an upstream's refusal: unchanged to a client of the same format, else in the client's error format. */
  #refuseWith(destination: Destination, answer: CollectedAnswer, unrepeatable: boolean): void {
    const { head } = answer;
    const ours = answer.refusal?.error ?? null;
    if (isVendorAccountError(ours)) throw ours;
    // A body that is not JSON is reported by its status alone.
    const body = ours === null ? answer.body : nothing;
    const refusal = answerError(head, false);
    if (refusal !== null) throw refusal;
    const error = translatedError(statusError(head, body, unrepeatable), {
      destination,
      request: this.#request,
      body,
    });
    const isOwn = formatOf(destination) === this.#request.format;
    // A request that must not be repeated gets the gateway's own error, which says so.
    if (!isOwn || unrepeatable || ours !== null || head.contentType?.startsWith('application/json') !== true)
      throw error;
    this.#relayRefusal(answer, error);
  }

  /** Answers with the upstream's body, which is an error of the client's own format. */
  #relayRefusal({ head, body }: CollectedAnswer, error: GatewayError): void {
    const call = this.#call;
    const lines = pathLine(call) + ownLines(call) + passedLines(call, head, true) + timingLine(call);
    if (call.accounted) return;
    call.error = error;
    if (!call.exchange.alive) return;
    call.exchange.respond(error.status, lines, body);
    account(this.#services, call, 'upstream_error');
  }

  async #onFailure(task: VideoTask, failure: UpstreamFailure): Promise<never> {
    await (failure.bytesSent ? this.#recordUnknown(task) : this.#forgetTask(task));
    throw failureError(failure, failure.bytesSent);
  }

  #recordUnknown(task: VideoTask): Promise<void> {
    return this.#recordSubmission(failedTask(task, unknownOutcome, Date.now()));
  }

  /** No upstream has the task. */
  #forgetTask(task: VideoTask): Promise<void> {
    return this.#services.book.discard(task.id, this.#once);
  }

  /**
   * Records how the submission ended. Retries for `recordMs`, since the upstream already has the task. After that, the
   * outcome is recorded once the store is back, and the client's error says that it is not recorded yet.
   */
  async #recordSubmission(task: VideoTask): Promise<void> {
    const until = performance.now() + recordMs;
    for (;;) {
      try {
        await this.#services.book.recordSubmission(task);
        return;
      } catch (fault) {
        if (performance.now() >= until) {
          const { name, id } = task.upstream;
          const outcome = id === null ? 'may have made a task' : `has made the task ${id}`;
          const words = `the upstream ${name} ${outcome}, which could not be recorded as ${task.id}`;
          this.#services.reportFault('promise', new Error(words, { cause: fault }), this.#call);
          this.#services.book.recordSubmissionLater(task);
          throw fault instanceof GatewayError ? notRecorded(fault) : fault;
        }
        await sleep(recordRetryMs);
      }
    }
  }
}

/** How a request reaches an upstream of its own format. */
function ownPath({ json }: VideoRequest, { body }: VideoCall): 'exact' | 'spliced' {
  return json !== null && body.length === 1 && body[0] === json ? 'exact' : 'spliced';
}

function madeOf(resolution: string | null) {
  return { size: null, quality: null, resolution };
}

/** The charge of a call whose task an upstream has accepted. */
function chargeOf(call: Call): TaskCharge {
  const budgets = call.limits?.budgets ?? [];
  const { mediaSeconds: seconds, made } = call;
  const costOfSeconds = (price: Price | null, factor: number, ofMade = made): number =>
    price === null ? 0 : costOf(price, { usage: null, seconds, units: 0, made: ofMade }, factor);
  const price = call.model?.price ?? null;
  const cost = call.target?.cost ?? null;
  const priced = [...(price?.seconds ?? []), ...(cost?.seconds ?? [])].map(({ resolution }) => resolution);
  const resolutions = [...new Set(priced)].map((resolution) => {
    const ofIt = madeOf(resolution);
    return {
      resolution,
      secondsNanoUsd: costOfSeconds(price, factorOf(call), ofIt),
      secondsPaidNanoUsd: cost === null ? null : costOfSeconds(cost, 1, ofIt),
    };
  });
  return {
    nanoUsd: costOfCall(call),
    seconds,
    videos: call.units,
    paidNanoUsd: paidForCall(call),
    secondsNanoUsd: costOfSeconds(price, factorOf(call)),
    secondsPaidNanoUsd: costOfSeconds(cost, 1),
    ...(resolutions.length === 0 ? {} : { resolutions }),
    budgets: budgets.map(({ pool: { name, limit } }) => ({ pool: name, limit })),
  };
}

const unknownOutcome = {
  code: 'submission_failed',
  message:
    'The response of the upstream could not be understood, so it is unknown whether it created the task.',
};

function notRecorded({ kind, cause }: GatewayError): GatewayError {
  return new GatewayError(
    kind,
    'The task was submitted, but cannot be recorded at the moment. Sent again with the same idempotency key, this ' +
      'request is answered with it once it is; without one it may be made twice.',
    { unrepeatable: true, cause },
  );
}
