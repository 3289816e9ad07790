import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Model, Target } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import type { UpstreamFailure } from '../../upstream/client.js';
import { dayMs } from '../../usage/budget.js';
import { failedTask, newTask, submitted, usualSeconds } from '../../video/advance.js';
import type { OnceRequest } from '../../video/book.js';
import { videoFaces, videoWires, wireOfKind } from '../../video/formats.js';
import { thisProcess } from '../../video/recovery.js';
import type { VideoCall, VideoRequest, VideoTask, VideoWire } from '../../video/task.js';
import { account } from '../account.js';
import { reserveBody } from '../admit.js';
import { ownLines, passedLines } from '../answer.js';
import { answerRefusal } from '../answer-kind.js';
import { type Answered, ask, failedQuestion, isFailure } from '../ask.js';
import { answerJson, attend } from '../attend.js';
import type { Call } from '../call.js';
import type { Candidates } from '../candidates.js';
import { deadlinesLeft } from '../deadlines.js';
import { failureError, statusError } from '../failure.js';
import { idempotencyMark } from '../idempotency.js';
import { limit } from '../limit.js';
import { findModel } from '../resolve.js';
import { routeCall } from '../route.js';
import type { Services } from '../services.js';
import { timingLine } from '../timing.js';
import { Trial } from '../trial.js';
import { keyMark } from '../upstream-head.js';
import { showContext, shownTask } from './answer.js';

const answerBytes = 4 * 1024 * 1024;
/** A body is in memory as it came, parsed, and as it is sent on. */
const bodyCopies = 3;
/** A submission asks an upstream for as long as any call, and then notes its end. */
const marginMs = 60_000;
/** How long the end of a submission is tried to be noted when the store does not take it, and how often. */
const settleMs = 5000;
const settleEveryMs = 200;

/** One way to make a task. */
interface Choice {
  readonly target: Target;
  readonly wire: VideoWire;
  readonly question: VideoCall;
  readonly apiKey: string | null;
}

/**
 * Makes a task: notes that it is about to be submitted, asks an upstream for it, notes what became of it, and only
 * then answers. A client that leaves does not stop this, since the upstream may have begun.
 */
export function createTask(services: Services, call: Call, request: VideoRequest): void {
  const model = findModel(call, 'video', request.model);
  call.model = model;
  call.units = request.count ?? 1;
  call.mediaSeconds = call.units * (request.seconds ?? usualLength(model));
  call.validatedAt = performance.now();
  limit(services, call, () => takeTask(services, call, request));
}

/** Seconds of a video for which no length is asked, as its model's first target makes it. */
function usualLength({ targets: [target] }: Model): number {
  return target === undefined ? 0 : usualSeconds[wireOfKind(target.upstream.kind)];
}

function takeTask(services: Services, call: Call, request: VideoRequest): void {
  let candidates: Candidates;
  try {
    candidates = routeCall(services, call, (call.model as Model).targets);
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
  openTask(services, call, request, candidates);
}

function openTask(services: Services, call: Call, request: VideoRequest, candidates: Candidates): void {
  const id = `video_${randomBytes(16).toString('hex')}`;
  const first = choiceAmong(candidates, request, id);
  // The upstream is sent parts of the body, whether or not the client stays: the buffer and its room are not the call's.
  call.target = first.target;
  reserveCopies(services, call);
  const room = call.reserved;
  call.reserved = 0;
  const submit = async (): Promise<void> => {
    try {
      const task = taskOf(call, request, id, first);
      call.mediaSeconds = call.units * (Number(task.seconds) || 0);
      const once = onceOnly(call, request);
      const submission = thisProcess(id, call.running.snapshot.timeouts.totalMs + marginMs);
      const earlier = await services.book.open(task, submission, once);
      const submitting = new Submitting(services, call, { request, candidates, once });
      if (earlier === null) await submitting.run(task, first);
      else await answerEarlier(services, call, request, earlier);
    } finally {
      services.bufferedBytes -= room;
    }
  };
  attend(services, call, () => {
    const submitting = submit();
    services.unattended.add(submitting);
    return submitting;
  });
}

/** A body that may come at all may be served, if nothing else is: then its copies have what room there is. */
function reserveCopies(services: Services, call: Call): void {
  const { bufferedBytes } = call.running.snapshot.limits;
  reserveBody(services, call, Math.min((bodyCopies - 1) * call.reserved, bufferedBytes - call.reserved));
}

/**
 * What the first of the candidates, from the present one on, that can be asked this is to be asked: a request may hold
 * large images, of which few copies are made.
 * @throws {GatewayError} why the first cannot, where none can
 */
function choiceAmong(candidates: Candidates, request: VideoRequest, id: string): Choice {
  let refusal: GatewayError | null = null;
  for (;;) {
    const { target, key } = candidates;
    const wire = videoWires[wireOfKind(target.upstream.kind)];
    try {
      const question = wire.create(request, target.model, id);
      return { target, wire, question, apiKey: target.upstream.apiKeys[key] ?? null };
    } catch (fault) {
      if (!(fault instanceof GatewayError)) throw fault;
      refusal ??= fault;
      if (!candidates.skip()) throw refusal;
    }
  }
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
  return { name, format: wireOfKind(kind), model: target.model, credential: keyMark(apiKey) };
}

/** How a request is told from others when its client marks it as one that may be sent again; else null. */
function onceOnly(call: Call, request: VideoRequest): OnceRequest | null {
  const mark = idempotencyMark(call);
  if (mark === null) return null;
  const hash = createHash('sha256');
  // A form has another boundary each time: what was read of it tells whether it is the same.
  const { image, imageTail, form, ...said } = request;
  hash.update(JSON.stringify(said));
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
      'A request with this idempotency key is still being served, try again shortly.',
      { retryAfter: 1 },
    );
  }
  answerJson(
    services,
    call,
    200,
    videoFaces[request.format].created(shownTask(call, booked.task), showContext(call, id)),
  );
}

interface Plan {
  readonly request: VideoRequest;
  readonly candidates: Candidates;
  readonly once: OnceRequest | null;
}

/** The way of one task to an upstream that takes it. */
class Submitting {
  readonly #services: Services;
  readonly #call: Call;
  readonly #plan: Plan;
  /** Of the newest question. */
  #trial: Trial | null = null;

  constructor(services: Services, call: Call, plan: Plan) {
    this.#services = services;
    this.#call = call;
    this.#plan = plan;
  }

  async run(opened: VideoTask, first: Choice): Promise<void> {
    let task = opened;
    for (let choice = first; ; ) {
      const answer = await this.#ask(choice, task.id);
      const next = isMade(answer) ? null : await this.#choiceAfter(answer, task.id);
      if (next === null) {
        if (isFailure(answer)) await this.#onFailure(task, answer);
        else await this.#onAnswer(choice, task, answer);
        return;
      }
      choice = next;
      task = { ...task, upstream: { ...upstreamPart(choice), id: null } };
      await this.#reopen(task);
    }
  }

  /** What is asked after a refusal or a failure which proves that nothing was made; null where nothing can be. */
  async #choiceAfter(answer: Answered | UpstreamFailure, id: string): Promise<Choice | null> {
    const { candidates, request } = this.#plan;
    const wait = candidates.after(
      failedQuestion(answer, !isFailure(answer) && isRefusal(answer.head.status)),
    );
    if (wait === null) return null;
    if (wait > 0) await sleep(wait);
    try {
      return choiceAmong(candidates, request, id);
    } catch (fault) {
      if (fault instanceof GatewayError) return null;
      throw fault;
    }
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

  #ask({ target, question, apiKey }: Choice, id: string): Promise<Answered | UpstreamFailure> {
    const call = this.#call;
    call.target = target;
    call.path = 'translated';
    // The task is made even if its client leaves before it is told, and has its price then.
    call.isServed = true;
    const { forwarded } = call.exchange.head;
    this.#trial = new Trial(this.#services, this.#plan.candidates);
    return new Promise((resolve) => {
      ask(
        this.#services,
        call,
        {
          ...question,
          upstream: target.upstream,
          wire: 'video',
          apiKey,
          lines: `${forwarded}idempotency-key: ${this.#plan.once?.mark ?? id}\r\n`,
          maxBytes: answerBytes,
          deadlines: deadlinesLeft(call),
          trial: this.#trial,
        },
        resolve,
      );
    });
  }

  async #onAnswer(choice: Choice, task: VideoTask, answer: Answered): Promise<void> {
    const call = this.#call;
    call.answeredAt = performance.now();
    const { head, body } = answer;
    if (head.status >= 300) {
      this.#trial?.failed('unusable_answer', true);
      const isClear = isRefusal(head.status);
      await (isClear ? this.#forgetTask(task) : this.#settleUnknown(task));
      this.#refuseWith(choice, answer, !isClear);
      return;
    }
    let made: VideoTask;
    try {
      const unreadable = answerRefusal(head, false);
      if (unreadable !== null)
        throw new GatewayError(unreadable.kind, unreadable.message, { unrepeatable: true });
      made = submitted(task, choice.wire.readCreated(body), Date.now());
      this.#trial?.succeeded();
    } catch (fault) {
      // A refusal inside a success, or nothing that can be understood: then the task may have been made.
      const isClear = fault instanceof GatewayError && !fault.unrepeatable;
      if (isClear) this.#trial?.succeeded();
      else this.#trial?.failed('unusable_answer', true);
      await (isClear ? this.#forgetTask(task) : this.#settleUnknown(task));
      throw fault;
    }
    await this.#settle(made);
    const { format } = this.#plan.request;
    answerJson(
      this.#services,
      call,
      200,
      videoFaces[format].created(shownTask(call, made), showContext(call, made.id)),
    );
  }

  /** Tells an upstream's refusal: as it came to a client of its own format, else in the client's. */
  #refuseWith({ target }: Choice, { head, body }: Answered, unrepeatable: boolean): void {
    const call = this.#call;
    const isOwn = wireOfKind(target.upstream.kind) === this.#plan.request.format;
    const refusal = answerRefusal(head, false);
    if (refusal !== null) throw refusal;
    const error = statusError(head, body, unrepeatable);
    // What may not be tried again is told in our words, which say so.
    if (!isOwn || unrepeatable || head.contentType?.startsWith('application/json') !== true) throw error;
    const lines = ownLines(call) + passedLines(call, head) + timingLine(call);
    if (call.accounted) return;
    call.error = error;
    call.isServed = false;
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
    return this.#services.book.discard(task.id, this.#plan.once);
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
          this.#services.reportFault(this.#call, new Error(words, { cause: fault }));
          this.#services.book.settleLater(task);
          throw fault instanceof GatewayError ? notRecorded(fault) : fault;
        }
        await sleep(settleEveryMs);
      }
    }
  }
}

const unknownOutcome = {
  code: 'submission_failed',
  message:
    'The upstream gave no answer that can be understood, so whether it has made this task is not known.',
};

/** @returns whether the upstream says that it has made the task */
function isMade(answer: Answered | UpstreamFailure): boolean {
  return !isFailure(answer) && answer.head.status < 300;
}

/** @returns whether an upstream that answers with this status has surely not made a task */
function isRefusal(status: number): boolean {
  // What stands before an upstream says 502 and 504 of a request that it may have handed on.
  return status < 500 ? status !== 408 : status === 501 || status === 503;
}

function notRecorded({ kind, cause }: GatewayError): GatewayError {
  return new GatewayError(
    kind,
    'The task was submitted, but cannot be recorded at the moment. Sent again with the same idempotency key, this ' +
      'request is answered with it once it is; without one it may be made twice.',
    { unrepeatable: true, cause },
  );
}
