import type { FaultPlace, GatewayError } from '../errors.js';
import type { Services } from '../flow/services.js';
import { Gather } from '../stream/gather.js';
import type { ResponseHead, UpstreamExchange, UpstreamFailure, UpstreamHandler } from '../upstream/client.js';
import type { Attempts } from './attempts.js';
import { Attempt } from './attempts.js';
import { readErrorAnswer } from './error-answer.js';

/** Error answers are read up to this size to see what they are about. */
const judgedErrorBytes = 256 * 1024;

/** Who decides what follows an attempt that failed before anything was relayed. */
export interface AttemptOwner {
  /**
   * The upstream answered, and its answer is an error that only the caller's error format can say.
   * @param head null where nothing of it may be passed on
   */
  onErrorAnswer(error: GatewayError, head: ResponseHead | null): void;
  /** @param failure null when the upstream answered, and its answer is of no use */
  onAttemptFailed(error: GatewayError, failure: UpstreamFailure | null): void;
  /** A good answer turns out to say that our account is not accepted. */
  onVendorAccountRefused(error: GatewayError): void;
}

/** Who may have another target asked in place of an answer. */
export interface AttemptJudge {
  /**
   * @param status by which the error answer is judged
   * @returns true when it is given up, and `onPassedOver` follows
   */
  passesOver(attempt: RelayedAttempt, status: number): boolean;
  onPassedOver(): void;
  /** An error answer says that our account is not accepted. */
  onVendorAccountAnswer(attempt: RelayedAttempt, error: GatewayError): void;
  /**
   * An error answer takes up so many bytes of memory until it is judged.
   * @returns false when there is no room for them
   */
  holds(bytes: number): boolean;
  /** A good answer begins, and will be handed on. */
  onTaken(attempt: RelayedAttempt): void;
  /** @returns true when another attempt of the call is still under way, and takes its place */
  survives(attempt: RelayedAttempt): boolean;
  /** The client is still there: an answer that is given up, also at its very end, is then of no use. */
  readonly isWanted: boolean;
  /** The client has all that it asked for: how the upstream's connection ends is of no interest any more. */
  readonly hasWholeAnswer: boolean;
}

/** An answer that is given up is read to its end up to this size, so that its connection can be used again. */
const mostDiscarded = 64 * 1024;

/** An attempt whose answer is handed on while it comes. */
export class RelayedAttempt extends Attempt implements UpstreamHandler, UpstreamExchange {
  exchange: UpstreamExchange | null = null;
  readonly #judge: AttemptJudge;
  readonly #handler: UpstreamHandler;
  #headSeen = false;
  /** Its answer has been given up, and the call goes on without it. */
  #isPassedOver = false;
  /** An error answer that is still coming. */
  #refusal: { readonly head: ResponseHead; readonly body: Gather } | null = null;

  constructor(services: Services, attempts: Attempts, judge: AttemptJudge, handler: UpstreamHandler) {
    super(services, attempts);
    this.#judge = judge;
    this.#handler = handler;
  }

  get sentAt(): number {
    return this.exchange?.sentAt ?? 0;
  }

  get bodyReleased(): boolean {
    return this.exchange?.bodyReleased ?? false;
  }

  onHead(head: ResponseHead): void {
    this.#headSeen = true;
    const { status } = head;
    if (status < 400) {
      this.answered();
      this.#judge.onTaken(this);
      this.#handler.onHead(head);
      return;
    }
    this.#refusal = { head, body: new Gather(judgedErrorBytes) };
    // The upstream's own failure is one whatever its body says. Of any other the body tells whose it is.
    if (status >= 500) this.#decide();
  }

  onData(chunk: Buffer): boolean {
    if (this.#isPassedOver) return true;
    const refusal = this.#refusal;
    if (refusal === null) return this.#handler.onData(chunk);
    const { body, head } = refusal;
    const room = body.roomFor(chunk.length, head.contentLength);
    if (room !== -1 && this.#judge.holds(room) && body.add(chunk, head.contentLength)) return true;
    if (this.#decide()) this.exchange?.cancel();
    return this.#isPassedOver || this.#handler.onData(chunk);
  }

  onEnd(): void {
    if (this.#refusal !== null) this.#decide();
    // It may find that the answer is of no use, and cancel.
    if (!this.#isPassedOver) this.#handler.onEnd();
    this.succeeded();
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#refusal !== null) this.#decide();
    if (this.#judge.hasWholeAnswer) this.succeeded();
    else this.failed(failure.reason, failure.headSeen);
    if (!this.#isPassedOver && !this.#judge.survives(this)) this.#handler.onFailure(failure);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.leave();
    this.#handler.onFault?.(where, fault);
  }

  /** Judges an error answer by what has come of it, and hands it on or gives it up. @returns whether it was given up */
  #decide(): boolean {
    const { head, body } = this.#refusal as { readonly head: ResponseHead; readonly body: Gather };
    this.#refusal = null;
    const come = body.take();
    // Whoever it is handed to counts it anew.
    if (come.length > 0) this.#judge.holds(0);
    const { status, error } = readErrorAnswer(this.target.upstream, head, come);
    this.refused(head, status);
    if (error !== null && error.vendorAccountStatus !== null) this.#judge.onVendorAccountAnswer(this, error);
    if (this.#judge.passesOver(this, status)) {
      this.#isPassedOver = true;
      const isUnread = head.status >= 500 && (head.contentLength < 0 || head.contentLength > mostDiscarded);
      if (isUnread) this.exchange?.cancel();
      this.#judge.onPassedOver();
      return true;
    }
    this.#handler.onHead(head);
    if (come.length > 0) this.#handler.onData(come);
    return false;
  }

  resume(): void {
    this.exchange?.resume();
  }

  cancel(): void {
    if (this.#judge.isWanted && this.#headSeen) this.failed('unusable_answer', true);
    else this.leave();
    this.exchange?.cancel();
  }
}
