import { performance } from 'node:perf_hooks';
import type { Attempt } from '../../attempts/attempts.js';
import { type ErrorAnswer, readErrorAnswer } from '../../attempts/error-answer.js';
import type { FailedAttempt } from '../../attempts/verdict.js';
import type { Upstream } from '../../config/types.js';
import type { FaultPlace, UpstreamFailureReason } from '../../errors.js';
import { alwaysEffects, noEffects } from '../../protocols/effects.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import { Gather } from '../../stream/gather.js';
import type {
  Deadlines,
  ResponseHead,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamHandler,
} from '../../upstream/types.js';
import type { HeadLines } from '../../wire/head.js';
import { nextRequestNumber, requestIdOf, requestSeries } from '../../wire/head.js';
import { isEventStream } from '../answer/content.js';
import type { Asking } from '../call.js';
import { keepMemory, takeAnswerMemory } from '../memory-budget.js';
import type { Services } from '../services.js';
import { type OneOffRequest, oneOffHead } from './head.js';

/**
 * Asks an upstream on behalf of somebody who is known already, a client that waits or the gateway itself.
 * @returns the answer, or why there is none; never resolves for what was given up
 */
export type AskUpstream = (request: CollectedRequest) => Promise<Answered | UpstreamFailure>;

/** One request to an upstream whose answer is read whole. */
export interface CollectedRequest extends OneOffRequest {
  readonly upstream: Upstream;
  readonly body: readonly Buffer[];
  readonly deadlines: Deadlines;
  /**
   * Hears how it goes, but for the end of a good answer: whoever asks sees whether it is of use. Null for a request
   * that says nothing of a target.
   */
  readonly attempt: Attempt | null;
  /** A larger answer is refused. */
  readonly maxBytes: number;
  /** It makes something each time it is asked. */
  readonly hasEffects: boolean;
}

/** Takes an answer that is a stream, in place of having it collected. */
export interface EventTaker {
  /** Such an answer has begun, of a good status. */
  onEvents(exchange: UpstreamExchange): void;
  /** As `UpstreamHandler` has it. */
  onData(chunk: Buffer): boolean;
}

/** An answer of any status, whole; without its body where an `EventTaker` has taken that. */
export interface Answered {
  readonly head: ResponseHead;
  readonly body: Buffer;
  /** What an answer of an error status comes to; null for any other. */
  readonly refusal: ErrorAnswer | null;
  /** Milliseconds from the request sent to the head. */
  readonly sentMs: number;
}

/** Whoever waits for an upstream, or for a file. */
export interface Waiter {
  /** Gives up what is under way; set by what that is. */
  cancel: () => void;
}

/**
 * Asks an upstream and collects its answer.
 * @param waiter after whose `cancel` the promise never settles
 * @param events null where no stream is asked for
 * @returns the answer, or why there is none; rejects with `internal_error` for a head that cannot be written
 */
export function ask(
  services: Services,
  call: Asking,
  request: CollectedRequest,
  waiter: Waiter,
  events: EventTaker | null = null,
): Promise<Answered | UpstreamFailure> {
  const { upstream, body, method, deadlines, attempt, hasEffects } = request;
  return new Promise((resolve) => {
    const collector = new Collector({ services, call, request, events }, resolve);
    const head = headFor(call, request);
    const exchange = services.upstream.send(
      upstream.origin,
      { method, head, body, source: null, hasEffects: hasEffects ? alwaysEffects : noEffects },
      deadlines,
      collector,
    );
    collector.exchange = exchange;
    collector.cancel = () => {
      attempt?.withdraw();
      exchange.cancel();
    };
    waiter.cancel = collector.cancel;
  });
}

/** A head that cannot be written says nothing of the target that it was for. */
function headFor(call: Asking, request: CollectedRequest): HeadLines {
  try {
    return oneOffHead(call, request.upstream, request);
  } catch (fault) {
    request.attempt?.withdraw();
    throw fault;
  }
}

/** True for what `ask` gives when there is no answer. */
export function isFailure(result: Answered | UpstreamFailure): result is UpstreamFailure {
  return 'reason' in result;
}

/**
 * A request that came to an error or to no answer, as `AttemptPlan` is told of it.
 * @param hasEffects asked again, what it asks for would be made twice
 */
export function failedRequest(result: Answered | UpstreamFailure, hasEffects: boolean): FailedAttempt {
  const shared = { replayable: true, hasEffects, sentMs: result.sentMs };
  if (isFailure(result)) return { ...shared, reason: result.reason, bytesSent: result.bytesSent };
  return { ...shared, reason: result.refusal?.status ?? result.head.status, bytesSent: true };
}

interface CollectorParts {
  readonly services: Services;
  readonly call: Asking;
  readonly request: CollectedRequest;
  readonly events: EventTaker | null;
}

class Collector implements UpstreamHandler {
  cancel: () => void = () => {};
  exchange: UpstreamExchange | null = null;
  #sentMs = 0;
  readonly #services: Services;
  readonly #call: Asking;
  readonly #request: CollectedRequest;
  readonly #events: EventTaker | null;
  readonly #gather: Gather;
  readonly #done: (result: Answered | UpstreamFailure) => void;
  #head: ResponseHead | null = null;
  /** The body goes to `events`, and nothing of it is gathered. */
  #isStream = false;

  constructor(
    { services, call, request, events }: CollectorParts,
    done: (result: Answered | UpstreamFailure) => void,
  ) {
    this.#services = services;
    this.#call = call;
    this.#request = request;
    this.#events = events;
    this.#gather = new Gather(request.maxBytes);
    this.#done = done;
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    const now = performance.now();
    this.#call.answeredAt = now;
    this.#sentMs = now - (this.exchange?.sentAt ?? 0);
    if (head.status < 400) this.#request.attempt?.answered();
    const events = this.#events;
    if (events !== null && this.exchange !== null && head.status < 300 && isEventStream(head)) {
      this.#isStream = true;
      events.onEvents(this.exchange);
    } else if (head.contentLength > this.#request.maxBytes) this.#tooLarge();
  }

  onData(chunk: Buffer): boolean {
    if (this.#isStream && this.#events !== null) return this.#events.onData(chunk);
    const call = this.#call;
    const expected = this.#head?.contentLength ?? -1;
    const room = this.#gather.roomFor(chunk.length, expected);
    if (room === -1) this.#tooLarge();
    else if (room !== call.gathered && takeAnswerMemory(this.#services, call, room) !== null)
      this.#give('no_room', 'there is no room for the answer');
    else this.#gather.add(chunk, expected);
    return true;
  }

  onEnd(): void {
    const head = this.#head;
    if (head === null) throw new Error('an answer has ended that has not begun');
    const body = this.#gather.take();
    const refusal = head.status < 400 ? null : readErrorAnswer(this.#request.upstream, head, body);
    if (refusal !== null) this.#onRefusal(head, refusal);
    this.#finish({ head, body, refusal, sentMs: this.#sentMs });
  }

  #onRefusal(head: ResponseHead, answered: ErrorAnswer): void {
    const { attempt } = this.#request;
    attempt?.answeredError(head, answered);
    if (isVendorAccountError(answered.error)) attempt?.report(answered.error);
  }

  onFailure(failure: UpstreamFailure): void {
    const head = this.#head;
    // Its status was told, though not all of its body.
    if (head !== null && head.status >= 400)
      this.#request.attempt?.answeredError(
        head,
        readErrorAnswer(this.#request.upstream, head, this.#gather.take()),
      );
    this.#request.attempt?.failed(failure.reason, failure.headSeen, failure.detail);
    this.#finish(failure);
  }

  /** The call ends by it, and whoever waits for the answer hears that none comes. */
  onFault(where: FaultPlace, fault: unknown): void {
    this.#call.onFault(where, fault);
    this.#request.attempt?.withdraw();
    this.#finish({
      reason: 'malformed_answer',
      detail: 'its answer could not be dealt with',
      bytesSent: true,
      headSeen: this.#head !== null,
      sentMs: this.#sentMs,
    });
  }

  #finish(result: Answered | UpstreamFailure): void {
    // The client has left: nobody else gives back what was taken since.
    if (this.#call.accounted) keepMemory(this.#services, this.#call, 0);
    this.#done(result);
  }

  #tooLarge(): void {
    this.#give('answer_too_large', `the answer has more than ${this.#request.maxBytes} bytes`);
  }

  #give(reason: UpstreamFailureReason, detail: string): void {
    this.#request.attempt?.failed(reason, true);
    this.cancel();
    this.#finish({ reason, detail, bytesSent: true, headSeen: true, sentMs: this.#sentMs });
  }
}

const noVendorHeaders = { openaiBeta: '', vendorcBeta: '', vendorcVersion: '' };

/** Stands for a call where the gateway itself asks an upstream about what an earlier call has begun. @param model of that call */
export function askingAbout(services: Services, model: string): Asking {
  const { running } = services;
  return {
    running,
    key: null,
    model: running.snapshot.models.get(model) ?? null,
    exchange: { id: requestIdOf(requestSeries, nextRequestNumber()), head: noVendorHeaders },
    error: null,
    accounted: false,
    answeredAt: 0,
    heldBytes: 0,
    gathered: 0,
    onFault: (where, fault) => services.reportFault(where, fault, null),
  };
}

/** Asks an upstream on nobody's behalf. @param cancels has what gives it up, while it is under way: then it never resolves */
export async function askAlone(
  services: Services,
  asking: Asking,
  request: CollectedRequest,
  cancels: Set<() => void>,
): Promise<Answered | UpstreamFailure> {
  const waiter: Waiter = { cancel: () => {} };
  const cancel = (): void => waiter.cancel();
  cancels.add(cancel);
  const answer = await ask(services, asking, request, waiter).finally(() => cancels.delete(cancel));
  keepMemory(services, asking, 0);
  return answer;
}
