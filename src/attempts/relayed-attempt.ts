import type { FaultPlace, GatewayError, GivenUpBy } from '../errors.js';
import type { Call, GatewayPath, ResolvedCall } from '../flow/call.js';
import type { Services } from '../flow/services.js';
import { isVendorAccountError } from '../protocols/error-formats/vendor-account.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import { Gather } from '../stream/gather.js';
import type { ResponseHead, UpstreamExchange, UpstreamFailure, UpstreamHandler } from '../upstream/types.js';
import { Attempt, type AttemptPlan } from './attempts.js';
import { readErrorAnswer } from './error-answer.js';
import { statusError } from './reported-error.js';

/** Error answers are read up to this size to find out what they are about. */
const judgedErrorBytes = 256 * 1024;
/** An answer that is given up is read to its end up to this size, so that its connection can be reused. */
const mostDiscarded = 64 * 1024;

/**
 * The call's side of its attempts: notified of their results, and decides what follows. After a failed attempt or an error
 * answer, another attempt may follow while nothing of an answer was relayed.
 */
export interface AttemptOwner {
  /**
   * Called when an error answer has arrived, or the part of it that is read. If another attempt follows, this one is told to
   * `discard` it.
   */
  onErrorAnswer(attempt: RelayedAttempt, answer: JudgedErrorAnswer): void;
  /**
   * Takes memory for an error answer until it is judged.
   * @returns false if there is no room for it
   */
  tryHold(bytes: number): boolean;
  /** @returns true if another attempt of the call is in flight and takes the place of this one */
  switchToOther(attempt: RelayedAttempt): boolean;
  /**
   * @param cause how the upstream failed or, if it answered, why its answer was given up
   * @param head of the answer that reports the error; null if there was none, or nothing of it may be passed on
   */
  onAttemptFailed(error: GatewayError, cause: UpstreamFailure | GivenUpBy, head: ResponseHead | null): void;
}

/** An error answer and its judgement. */
export interface JudgedErrorAnswer {
  readonly head: ResponseHead;
  /** The part of it that has arrived. */
  readonly body: Buffer;
  /** The status by which it is judged. */
  readonly status: number;
  /** The error that it reports. */
  readonly error: GatewayError;
}

/** The parts of a prepared attempt that its answer needs. */
interface AttemptParts {
  readonly transform: AnswerTransform;
  readonly gatewayPath: GatewayPath;
  readonly leftOut: Call['leftOut'];
}

/** The part that has arrived of an error answer that is not judged yet. */
interface ErrorAnswerSoFar {
  readonly head: ResponseHead;
  readonly body: Gather;
}

/** An attempt whose answer is relayed while it arrives. */
export class RelayedAttempt extends Attempt implements UpstreamHandler, UpstreamExchange {
  readonly transform: AnswerTransform;
  readonly gatewayPath: GatewayPath;
  readonly leftOut: Call['leftOut'];
  exchange: UpstreamExchange | null = null;
  readonly #call: ResolvedCall;
  readonly #owner: AttemptOwner;
  /** Handler of the rest of its answer. */
  handler: UpstreamHandler;
  /** A good answer has begun. */
  isAnswered = false;
  /** Its answer was given up, and the call continues without it. */
  #isDiscarded = false;
  /** Set until it is judged. */
  #errorAnswer: ErrorAnswerSoFar | null = null;

  constructor(
    services: Services,
    plan: AttemptPlan,
    owner: AttemptOwner,
    handler: UpstreamHandler,
    { transform, gatewayPath, leftOut }: AttemptParts,
  ) {
    super(services, plan);
    this.transform = transform;
    this.gatewayPath = gatewayPath;
    this.leftOut = leftOut;
    this.#call = plan.call;
    this.#owner = owner;
    this.handler = handler;
  }

  get sentAt(): number {
    return this.exchange?.sentAt ?? 0;
  }

  get isWritten(): boolean {
    return this.exchange?.isWritten ?? false;
  }

  get bodyReleased(): boolean {
    return this.exchange?.bodyReleased ?? false;
  }

  /** Its answer is an error that has not arrived completely. */
  get isErrorComing(): boolean {
    return this.#errorAnswer !== null;
  }

  onHead(head: ResponseHead): void {
    const { status } = head;
    if (status < 400) {
      this.isAnswered = true;
      this.answered();
      this.handler.onHead(head);
      return;
    }
    const errorAnswer = { head, body: new Gather(judgedErrorBytes) };
    this.#errorAnswer = errorAnswer;
    // A failure of the upstream counts whatever its body says. For other errors, the body shows whose fault they are.
    if (status >= 500) this.#decide(errorAnswer);
  }

  onData(chunk: Buffer): boolean {
    if (this.#isDiscarded) return true;
    const errorAnswer = this.#errorAnswer;
    if (errorAnswer === null) return this.handler.onData(chunk);
    const { body, head } = errorAnswer;
    const room = body.roomFor(chunk.length, head.contentLength);
    if (room !== -1 && this.#owner.tryHold(room) && body.add(chunk, head.contentLength)) return true;
    this.#decide(errorAnswer);
    if (this.#isDiscarded) this.exchange?.cancel();
    return this.#isDiscarded || this.handler.onData(chunk);
  }

  onEnd(): void {
    if (this.#errorAnswer !== null) this.#decide(this.#errorAnswer);
    // The handler may find that the answer is useless, and cancel.
    if (!this.#isDiscarded) this.handler.onEnd();
    this.succeeded();
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#errorAnswer !== null) this.#decide(this.#errorAnswer);
    this.#noteEnd(failure);
    if (!this.#isDiscarded && !this.#owner.switchToOther(this)) this.handler.onFailure(failure);
  }

  #noteEnd(failure: UpstreamFailure): void {
    const { passedError } = this.transform;
    // The whole answer had arrived, or nothing waits for it: the end of the connection no longer matters.
    const isOver = this.#call.accounted || this.transform.isComplete;
    if (passedError !== null) this.unusable(passedError);
    else if (isOver) this.succeeded();
    else this.failed(failure.reason, failure.headSeen, failure.detail);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.withdraw();
    this.handler.onFault(where, fault);
  }

  /** Judges an error answer by the part that has arrived. It is relayed unless the call continues without it. */
  #decide({ head, body: gathered }: ErrorAnswerSoFar): void {
    this.#errorAnswer = null;
    const body = gathered.take();
    // Its memory is returned here. The code that gets the body takes it again.
    if (body.length > 0) this.#owner.tryHold(0);
    const answered = readErrorAnswer(this.target.upstream, head, body);
    const { status, error } = answered;
    this.answeredError(head, answered);
    if (isVendorAccountError(error)) this.report(error);
    this.#owner.onErrorAnswer(this, { head, body, status, error: error ?? statusError(head, body) });
    if (this.#isDiscarded) return;
    this.handler.onHead(head);
    if (body.length > 0) this.handler.onData(body);
  }

  /** Reads an error answer only as far as its connection can still be reused. */
  discard({ status, contentLength }: ResponseHead): void {
    this.#isDiscarded = true;
    if (status >= 500 && (contentLength < 0 || contentLength > mostDiscarded)) this.exchange?.cancel();
  }

  /**
   * Cancels an answer that had begun. Only what the upstream has done counts against it.
   * @param error the error for the caller
   */
  cancelFor(reason: GivenUpBy, error: GatewayError): void {
    if (reason === 'unusable_answer') this.unusable(error);
    else this.failed(reason, true);
    this.cancel();
  }

  resume(): void {
    this.exchange?.resume();
  }

  cancel(): void {
    this.withdraw();
    this.exchange?.cancel();
  }
}
