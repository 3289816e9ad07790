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
import { type HeadLines, nextRequestNumber, requestIdOf, requestSeries } from '../../wire/head.js';
import { isEventStream } from '../answer/content.js';
import type { RequestSender } from '../call.js';
import { keepMemory, takeAnswerMemory } from '../memory-budget.js';
import type { Services } from '../services.js';
import { type OneOffRequest, oneOffHead } from './head.js';

/**
 * Sends a request to an upstream on behalf of a known caller: a waiting client or the gateway itself.
 * @returns the answer, or why there is none; never settles if the request was cancelled
 */
export type CollectAnswer = (request: CollectedRequest) => Promise<CollectedAnswer | UpstreamFailure>;

/** A request to an upstream whose answer is read whole. */
export interface CollectedRequest extends OneOffRequest {
  readonly upstream: Upstream;
  readonly body: readonly Buffer[];
  readonly deadlines: Deadlines;
  /**
   * Records the result of the request, except the end of a good answer: the caller decides whether it is useful. Null for a
   * request that says nothing about a target's health.
   */
  readonly attempt: Attempt | null;
  /** Larger answers are refused. */
  readonly maxBytes: number;
  /** Called before the request is cancelled, if its upstream has got all of it and has answered no error or redirect. */
  readonly onLeft?: () => void;
  /** Each repetition of the request makes something again. */
  readonly hasEffects: boolean;
}

/** Reads an answer that is a stream, which is then not gathered. */
export interface EventTaker {
  /** Called when a stream with a good status has begun. */
  onEvents(exchange: UpstreamExchange): void;
  /** As in `UpstreamHandler`. */
  onData(chunk: Buffer): boolean;
}

/** A complete answer of any status; without its body if an `EventTaker` has read that. */
export interface CollectedAnswer {
  readonly head: ResponseHead;
  readonly body: Buffer;
  /** The meaning of an answer with an error status; null for any other. */
  readonly refusal: ErrorAnswer | null;
  /** Milliseconds from sending the request to the head of the answer. */
  readonly sentMs: number;
}

/** What can be cancelled while it waits for an upstream or a file: the work in flight sets the function. */
export interface Cancellable {
  cancel: () => void;
}

/**
 * Sends a request to an upstream and gathers its answer.
 * @param waiting after its `cancel` the promise never settles
 * @param events null if no stream is requested
 * @returns the answer, or why there is none; rejects with `internal_error` for a head that cannot be written
 */
export function collectAnswer(
  services: Services,
  call: RequestSender,
  request: CollectedRequest,
  waiting: Cancellable,
  events: EventTaker | null = null,
): Promise<CollectedAnswer | UpstreamFailure> {
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
    waiting.cancel = () => {
      if (exchange.isWritten && !collector.isRefused) request.onLeft?.();
      collector.cancel();
    };
  });
}

/** A head that cannot be written does not count against the target. */
function headFor(call: RequestSender, request: CollectedRequest): HeadLines {
  try {
    return oneOffHead(call, request.upstream, request);
  } catch (fault) {
    request.attempt?.withdraw();
    throw fault;
  }
}

/** Returns true if `collectAnswer` got no answer. */
export function isFailure(result: CollectedAnswer | UpstreamFailure): result is UpstreamFailure {
  return 'reason' in result;
}

/**
 * Describes a request that got an error or no answer, for `AttemptPlan`. A repetition would make what it requests twice.
 */
export function failedRequest(result: CollectedAnswer | UpstreamFailure): FailedAttempt {
  const shared = { replayable: true, hasEffects: true, sentMs: result.sentMs };
  if (isFailure(result)) return { ...shared, reason: result.reason, bytesSent: result.bytesSent };
  return { ...shared, reason: result.refusal?.status ?? result.head.status, bytesSent: true };
}

interface CollectorParts {
  readonly services: Services;
  readonly call: RequestSender;
  readonly request: CollectedRequest;
  readonly events: EventTaker | null;
}

class Collector implements UpstreamHandler {
  cancel: () => void = () => {};
  exchange: UpstreamExchange | null = null;
  #sentMs = 0;
  readonly #services: Services;
  readonly #call: RequestSender;
  readonly #request: CollectedRequest;
  readonly #events: EventTaker | null;
  readonly #gather: Gather;
  readonly #done: (result: CollectedAnswer | UpstreamFailure) => void;
  #head: ResponseHead | null = null;
  /** The body is passed to `events` and not gathered. */
  #isStream = false;

  constructor(
    { services, call, request, events }: CollectorParts,
    done: (result: CollectedAnswer | UpstreamFailure) => void,
  ) {
    this.#services = services;
    this.#call = call;
    this.#request = request;
    this.#events = events;
    this.#gather = new Gather(request.maxBytes);
    this.#done = done;
  }

  get isRefused(): boolean {
    return this.#head !== null && this.#head.status >= 300;
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
    // The status arrived, though not the whole body.
    if (head !== null && head.status >= 400)
      this.#request.attempt?.answeredError(
        head,
        readErrorAnswer(this.#request.upstream, head, this.#gather.take()),
      );
    this.#request.attempt?.failed(failure.reason, failure.headSeen, failure.detail);
    this.#finish(failure);
  }

  /** Ends the call, and resolves the waiting promise with no answer. */
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

  #finish(result: CollectedAnswer | UpstreamFailure): void {
    // The client has disconnected, so memory taken since then has to be returned here.
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

/**
 * Takes the place of a call when the gateway itself asks an upstream about work that an earlier call has started.
 * @param model of that call
 */
export function gatewaySender(services: Services, model: string): RequestSender {
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

/**
 * Sends a request that belongs to no call.
 * @param cancels holds the function that cancels it while it is in flight; the promise then never settles
 */
export async function collectAlone(
  services: Services,
  sender: RequestSender,
  request: CollectedRequest,
  cancels: Set<() => void>,
): Promise<CollectedAnswer | UpstreamFailure> {
  const waiting: Cancellable = { cancel: () => {} };
  const cancel = (): void => waiting.cancel();
  cancels.add(cancel);
  const answer = await collectAnswer(services, sender, request, waiting).finally(() =>
    cancels.delete(cancel),
  );
  keepMemory(services, sender, 0);
  return answer;
}
