import { createHash, randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Asker, Attempt, type AttemptPlan } from '../../attempts/attempts.js';
import { toldStatus } from '../../attempts/error-answer.js';
import { failureError, statusError } from '../../attempts/told-error.js';
import { type FailedAttempt, provesUndone } from '../../attempts/verdict.js';
import type { Model, Price, Target } from '../../config/types.js';
import { LeftOut } from '../../conversation/left-out.js';
import { GatewayError, unrepeatable } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import { isVendorAccountError, toldError } from '../../protocols/error-formats/vendor-account.js';
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
import type { OnceRequest } from '../../video/book.js';
import { clientFormats, upstreamFormatOf, upstreamFormats } from '../../video/formats.js';
import { wrongLength } from '../../video/members.js';
import { requireMetered } from '../../video/metered.js';
import { thisProcess } from '../../video/recovery.js';
import { resolutionOf } from '../../video/shape.js';
import type { TaskCharge, UpstreamFormat, VideoCall, VideoRequest, VideoTask } from '../../video/task.js';
import { unsaidHints } from '../../video/unsayable.js';
import { headerLine, joinLines } from '../../wire/head.js';
import { answerError } from '../answer/content.js';
import { ownLines, passedLines, timingLine } from '../answer/lines.js';
import { type AuthenticatedCall, type Call, deadlinesLeft, type ResolvedCall } from '../call.js';
import { admitResolved } from '../limits/admit.js';
import { detachMemory, takeMemory } from '../memory-budget.js';
import { account } from '../record/account.js';
import { costOfCall, factorOf, paidForCall } from '../record/consumption.js';
import { findModel, routeCall } from '../resolve.js';
import type { Services } from '../services.js';
import { type Answered, ask, failedRequest, isFailure } from '../upstream/ask.js';
import { answerJson, attend } from '../upstream/attend.js';
import { forwardedLines, idempotencyMark } from '../upstream/head.js';
import { keyMark } from '../upstream/key-mark.js';
import { secretOf, showContext, shownTask } from './answer.js';
import { onEnded } from './settle.js';

const answerBytes = 4 * 1024 * 1024;
const nothing = Buffer.alloc(0);
/** A body is in memory as it came, parsed, and as it is sent on. */
const bodyCopies = 3;
/** A submission asks an upstream for as long as any call, and then notes its end. */
const marginMs = 60_000;
/** How long, and how often, writing the end of a submission is tried again while the store fails. */
const settleMs = 5000;
const settleEveryMs = 200;

/** One way to make a task. */
interface Choice {
  readonly target: Target;
  readonly upstreamFormat: UpstreamFormat;
  readonly request: VideoCall;
  readonly apiKey: string | null;
}

/**
 * Makes a task: notes that it is about to be submitted, asks an upstream for it, notes what became of it, and only
 * then answers. A client that leaves does not stop this, since the upstream may have begun.
 */
export function createTask(services: Services, call: AuthenticatedCall, request: VideoRequest): void {
  requireMetered(request);
  const resolved = findModel(call, 'video', request.model);
  requireServable(request, resolved.model);
  call.units = request.count ?? 1;
  call.mediaSeconds = call.units * chargedSeconds(request.seconds ?? usualLength(resolved.model));
  call.made = { size: null, quality: null, resolution: resolutionOf(request) };
  call.validatedAt = performance.now();
  admitResolved(services, resolved, () => takeTask(services, resolved, request));
}

/**
 * What no target can be asked is refused before the call has taken anything of its key's limits. A length that is no number
 * may mean something to the upstream, but not where it is paid for.
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

/** Seconds of a video for which no length is asked, or one that is no number, as its model's first target makes it. */
function usualLength({ targets: [target] }: Model): number {
  return target === undefined ? 0 : usualSeconds[upstreamFormatOf(target.upstream.kind)];
}

/** The targets that can be asked for a task: where only its own format can say it, those of that format. */
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
    // What has come before needs no upstream to be answered.
    attend(services, call, async () => {
      const earlier = await services.book.known(once);
      if (earlier === null) throw fault;
      await answerEarlier(services, call, request, earlier);
    });
    return;
  }
  openTask(services, call, request, plan);
}

function openTask(services: Services, call: Call, request: VideoRequest, plan: AttemptPlan): void {
  // An upstream is sent parts of the body, whether or not the client stays: the buffer and its room are not the call's.
  call.target = plan.target;
  takeCopies(services, call);
  const giveBack = detachMemory(services, call);
  const submitting = new Submitting(services, call, request, plan);
  services.unattended.add(submitting.run().finally(giveBack));
}

/** A body that may come at all may be served, if nothing else of its key is: then its copies have what room there is. */
function takeCopies(services: Services, call: Call): void {
  const { bufferedBytesPerKey } = call.running.snapshot.limits;
  takeMemory(
    services,
    call,
    Math.min((bodyCopies - 1) * call.heldBytes, bufferedBytesPerKey - call.heldBytes),
  );
}

/**
 * What the present target is to be asked: a request may hold large images, of which few copies are made.
 * @throws {GatewayError} for what it cannot be asked
 */
function choiceAt({ target, apiKey }: AttemptPlan, request: VideoRequest, id: string): Choice {
  const upstreamFormat = upstreamFormats[upstreamFormatOf(target.upstream.kind)];
  return {
    target,
    upstreamFormat,
    request: upstreamFormat.create(request, target.model, id),
    apiKey,
  };
}

function taskOf(call: Call, request: VideoRequest, id: string, choice: Choice): VideoTask {
  const { key, running } = call;
  return newTask({
    id,
    keyId: key?.id ?? '',
    groups: key?.groups ?? [],
    request,
    upstream: upstreamPart(choice),
    now: Date.now(),
    ttlMs: running.snapshot.store.taskDays * dayMs,
  });
}

function upstreamPart({ target, apiKey }: Choice): Omit<VideoTask['upstream'], 'id'> {
  const { name, kind } = target.upstream;
  return { name, format: upstreamFormatOf(kind), model: target.model, credential: keyMark(apiKey) };
}

/** How a request is told from others when its client marks it as one that may be sent again; else null. */
function onceOnly(call: Call, request: VideoRequest): OnceRequest | null {
  const mark = idempotencyMark(call);
  if (mark === null) return null;
  const hash = createHash('sha256');
  // A form has another boundary each time: its parts tell whether it is the same.
  const { image, imageTail, form, fault: _, ...said } = request;
  hash.update(JSON.stringify(said));
  for (const { name, data } of form ?? [])
    hash.update(`${JSON.stringify(name)}${data.length}\n`).update(data);
  for (const source of [image, imageTail])
    hash.update(source === null ? '-' : source.kind === 'url' ? source.url : source.bytes);
  return { mark, fingerprint: hash.digest('hex').slice(0, 32) };
}

/** The same request has come before: its task is the answer. */
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

/** What was asked of an upstream for a task, and what it said. */
interface Asked {
  readonly choice: Choice;
  readonly task: VideoTask;
  readonly answer: Answered | UpstreamFailure;
}

/**
 * The way of one task to an upstream that takes it. A client that leaves ends nothing here, so it settles nothing either:
 * what the call costs is known, and its slot is free, when the creation has ended.
 */
class Submitting implements Asker, ExchangeListener {
  readonly #services: Services;
  readonly #call: Call;
  readonly #request: VideoRequest;
  readonly #plan: AttemptPlan;
  readonly #once: OnceRequest | null;
  readonly #id = `video_${randomBytes(16).toString('hex')}`;
  /** Of the newest attempt. */
  #attempt: Attempt | null = null;
  /** The newest one that failed, and after which another target may be asked. */
  #failed: Asked | null = null;
  /** The client was answered, or is never going to be. */
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

  /** Ends when the client was answered and the book says what became of the task; never rejects. */
  run(): Promise<void> {
    return new Promise((resolve) => {
      this.#onOver = resolve;
      this.#plan.start(this);
    });
  }

  ask(): void {
    const choice = choiceAt(this.#plan, this.#request, this.#id);
    this.#call.target = choice.target;
    this.#settleBy(this.#submit(choice));
  }

  onNoneLeft(fault: unknown): void {
    this.#settleBy(this.#failed === null ? Promise.reject(fault) : this.#conclude(this.#failed));
  }

  onClientGone(): void {
    if (this.#isOver) account(this.#services, this.#call, 'client_gone');
  }

  onDrained(): void {
    account(this.#services, this.#call, 'complete');
  }

  /** @param step resolves to whether the call is over with it */
  #settleBy(step: Promise<boolean>): void {
    step.then(
      (isOver) => {
        if (isOver) this.#end();
      },
      (fault: unknown) => {
        if (this.#call.exchange.alive) this.#call.onFault('promise', fault);
        else this.#noteUntold(fault);
        this.#end();
      },
    );
  }

  /** Nobody is there to be told. */
  #noteUntold(fault: unknown): void {
    if (fault instanceof GatewayError) this.#call.error = fault;
    else this.#services.reportFault('promise', fault, this.#call);
  }

  #end(): void {
    this.#isOver = true;
    if (!this.#call.exchange.alive) account(this.#services, this.#call, 'client_gone');
    this.#onOver();
  }

  async #submit(choice: Choice): Promise<boolean> {
    const task = await this.#noteSubmitting(choice);
    if (task === null) return true;
    const answer = await this.#askOrForget(choice, task);
    const failed = this.#failureOf(choice, answer);
    if (failed === null || !this.#plan.planNext(failed)) return this.#conclude({ choice, task, answer });
    this.#failed = { choice, task, answer };
    this.#plan.beginPlanned(null);
    return false;
  }

  /** @returns the task as the book has it, or null where an earlier request was the same and its task is the answer */
  async #noteSubmitting(choice: Choice): Promise<VideoTask | null> {
    const call = this.#call;
    if (this.#failed !== null) {
      const task = { ...this.#failed.task, upstream: { ...upstreamPart(choice), id: null } };
      await this.#reopen(task);
      return task;
    }
    const task = taskOf(call, this.#request, this.#id, choice);
    call.mediaSeconds = call.units * chargedSeconds(Number(task.seconds) || 0);
    const submission = thisProcess(this.#id, call.running.snapshot.timeouts.totalMs + marginMs);
    const earlier = await this.#services.book.open(task, submission, this.#once);
    if (earlier === null) return task;
    await answerEarlier(this.#services, call, this.#request, earlier);
    return null;
  }

  /** Nobody else is asked: the book and the client are told what the upstream said. */
  async #conclude({ choice, task, answer }: Asked): Promise<boolean> {
    if (isFailure(answer)) await this.#onFailure(task, answer);
    else await this.#onAnswer(choice, task, answer);
    return true;
  }

  /** How a submission failed; null for an answer which says that the upstream has made the task, or may have. */
  #failureOf(choice: Choice, answer: Answered | UpstreamFailure): FailedAttempt | null {
    if (!isMade(answer)) return failedRequest(answer, true);
    const error = errorIn(choice, answer);
    const status = error === null ? null : statusOf(error);
    if (error === null || status === null) return null;
    this.#attempt?.endedAs(status);
    if (isVendorAccountError(error)) this.#attempt?.report(error);
    return { reason: status, bytesSent: true, replayable: true, hasEffects: true, sentMs: answer.sentMs };
  }

  /** @throws {GatewayError} when the store does not take it; no upstream has the task then */
  async #reopen(task: VideoTask): Promise<void> {
    try {
      await this.#services.book.reopen(task);
    } catch (fault) {
      await this.#forgetTask(task);
      throw fault;
    }
  }

  /** @throws {GatewayError} for what cannot be written; no upstream has the task then */
  async #askOrForget(choice: Choice, task: VideoTask): Promise<Answered | UpstreamFailure> {
    try {
      return await this.#send(choice);
    } catch (fault) {
      await this.#forgetTask(task);
      throw fault;
    }
  }

  #send(choice: Choice): Promise<Answered | UpstreamFailure> {
    const { target, upstreamFormat, request, apiKey } = choice;
    const call = this.#call;
    call.gatewayPath = 'translated';
    const format = upstreamFormatOf(target.upstream.kind);
    call.leftOut = new LeftOut(unsaidHints(this.#request, format, upstreamFormat.unsaid)).names;
    const forwarded = forwardedLines(call, target, 'video');
    this.#attempt = new Attempt(this.#services, this.#plan);
    return ask(
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

  async #onAnswer(choice: Choice, task: VideoTask, answer: Answered): Promise<void> {
    const call = this.#call;
    call.answeredAt = performance.now();
    const { head, body } = answer;
    if (head.status >= 300) {
      this.#attempt?.failed('unusable_answer', true);
      const isClear = provesUndone(head.status, answer.sentMs);
      await (isClear ? this.#forgetTask(task) : this.#settleUnknown(task));
      this.#refuseWith(choice, answer, !isClear);
      return;
    }
    let made: VideoTask;
    try {
      const unreadable = answerError(head, false);
      if (unreadable !== null)
        throw new GatewayError(unreadable.kind, unreadable.message, { unrepeatable: true });
      made = submitted(task, readCreated(choice, body), Date.now());
      // The task has its price even if its client has left before it is told.
      call.isServed = true;
      made = { ...made, charge: chargeOf(call) };
      this.#attempt?.succeeded();
    } catch (fault) {
      // A refusal inside a success, or nothing that can be understood: then the task may have been made.
      const isClear = fault instanceof GatewayError && isRefusal(fault, answer.sentMs);
      if (isClear) this.#attempt?.succeeded();
      else this.#attempt?.failed('unusable_answer', true);
      await (isClear ? this.#forgetTask(task) : this.#settleUnknown(task));
      throw isClear || !(fault instanceof GatewayError) ? fault : unrepeatable(fault);
    }
    // First, so that a task that is in the book has the line of its call, too, whatever is killed.
    await this.#services.openCalls.keep(call);
    await this.#settle(made);
    if (hasEnded(made)) onEnded(this.#services, made);
    const { format } = this.#request;
    answerJson(
      this.#services,
      call,
      200,
      clientFormats[format].created(shownTask(call, made), showContext(call, made.id)),
    );
  }

  /** Tells an upstream's refusal: as it came to a client of its own format, else in the client's. */
  #refuseWith({ target }: Choice, answer: Answered, unrepeatable: boolean): void {
    const { head } = answer;
    const ours = answer.refusal?.error ?? null;
    if (isVendorAccountError(ours)) throw ours;
    // What is not JSON is told by its status alone.
    const body = ours === null ? answer.body : nothing;
    const call = this.#call;
    const isOwn = upstreamFormatOf(target.upstream.kind) === this.#request.format;
    const refusal = answerError(head, false);
    if (refusal !== null) throw refusal;
    const error = statusError(head, body, unrepeatable);
    // What may not be tried again is told in our words, which say so.
    if (!isOwn || unrepeatable || ours !== null || head.contentType?.startsWith('application/json') !== true)
      throw error;
    const lines = ownLines(call) + passedLines(call, head) + timingLine(call);
    if (call.accounted) return;
    call.error = error;
    if (!call.exchange.alive) return;
    call.exchange.respond(head.status, lines, body);
    account(this.#services, call, 'upstream_error');
  }

  async #onFailure(task: VideoTask, failure: UpstreamFailure): Promise<never> {
    await (failure.bytesSent ? this.#settleUnknown(task) : this.#forgetTask(task));
    throw failureError(failure, failure.bytesSent);
  }

  #settleUnknown(task: VideoTask): Promise<void> {
    return this.#settle(failedTask(task, unknownOutcome, Date.now()));
  }

  /** No upstream has the task. */
  #forgetTask(task: VideoTask): Promise<void> {
    return this.#services.book.discard(task.id, this.#once);
  }

  /**
   * Notes how the submission ended, and tries again for a while: the upstream has the task already. What cannot be noted
   * by then will be once the store is back, and the client is told that it is not now.
   */
  async #settle(task: VideoTask): Promise<void> {
    const until = performance.now() + settleMs;
    for (;;) {
      try {
        await this.#services.book.settle(task);
        return;
      } catch (fault) {
        if (performance.now() >= until) {
          const { name, id } = task.upstream;
          const outcome = id === null ? 'may have made a task' : `has made the task ${id}`;
          const words = `the upstream ${name} ${outcome}, which could not be recorded as ${task.id}`;
          this.#services.reportFault('promise', new Error(words, { cause: fault }), this.#call);
          this.#services.book.settleLater(task);
          throw fault instanceof GatewayError ? notRecorded(fault) : fault;
        }
        await sleep(settleEveryMs);
      }
    }
  }
}

/** What a call for a task is charged whose upstream has taken it. */
function chargeOf(call: Call): TaskCharge {
  const budgets = call.limited?.budgets ?? [];
  const { mediaSeconds: seconds, made } = call;
  const costOfSeconds = (price: Price | null, factor: number, ofMade = made): number =>
    price === null ? 0 : costOf(price, { usage: null, seconds, calls: 0, made: ofMade }, factor);
  const price = call.model?.price ?? null;
  const cost = call.target?.cost ?? null;
  const priced = [...(price?.seconds ?? []), ...(cost?.seconds ?? [])].map(({ resolution }) => resolution);
  const resolutions = [...new Set(priced)].map((resolution) => {
    const ofIt = { size: null, quality: null, resolution };
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

/**
 * Reads a good answer.
 * @throws {GatewayError} what it says went wrong, as it may be told: a task that failed over our account is none
 */
function readCreated(
  { upstreamFormat, target }: Choice,
  body: Buffer,
): ReturnType<UpstreamFormat['readCreated']> {
  const { secrets } = target.upstream;
  try {
    const created = upstreamFormat.readCreated(body);
    const secret = secretOf(created.update?.error ?? null, secrets);
    if (secret !== null) throw secret;
    return created;
  } catch (fault) {
    throw fault instanceof GatewayError ? toldError(fault, body.toString('utf8'), secrets) : fault;
  }
}

/** What is wrong by a good answer's own words, so that no task was made; else null. */
function errorIn(choice: Choice, { head, body }: Answered): GatewayError | null {
  if (answerError(head, false) !== null) return null;
  try {
    readCreated(choice, body);
    return null;
  } catch (fault) {
    return fault instanceof GatewayError && !fault.unrepeatable ? fault : null;
  }
}

/**
 * Whether a good answer's words say that no task was made. An upstream that is too slow or overloaded may have handed the
 * request on all the same, as with the status that such words stand for.
 */
function isRefusal({ kind, status, unrepeatable }: GatewayError, sentMs: number): boolean {
  if (unrepeatable) return false;
  return (kind !== 'upstream_timeout' && kind !== 'overloaded') || provesUndone(status, sentMs);
}

/** The status that such words stand for; null where they may be the caller's mistake as well as the upstream's. */
function statusOf(error: GatewayError): number | null {
  return toldStatus(error) ?? (error.kind === 'overloaded' ? error.status : null);
}

/** @returns whether the upstream says that it has made the task */
function isMade(answer: Answered | UpstreamFailure): answer is Answered {
  return !isFailure(answer) && answer.head.status < 300;
}

function notRecorded({ kind, cause }: GatewayError): GatewayError {
  return new GatewayError(
    kind,
    'The task was submitted, but cannot be recorded at the moment. Sent again with the same idempotency key, this ' +
      'request is answered with it once it is; without one it may be made twice.',
    { unrepeatable: true, cause },
  );
}
