import type { GatewayError } from '../errors.js';
import type { ResponseHead, UpstreamExchange, UpstreamFailure, UpstreamHandler } from '../upstream/client.js';
import type { Candidates } from './candidates.js';
import type { Services } from './services.js';
import { Trial } from './trial.js';

/** Who decides what follows an attempt that failed before anything was relayed. */
export interface AttemptOwner {
  /** The upstream answered, and its answer is an error that only the caller's dialect can say. */
  onErrorAnswer(error: GatewayError, head: ResponseHead): void;
  /** @param failure null when the upstream answered, and its answer is of no use */
  onAttemptFailed(error: GatewayError, failure: UpstreamFailure | null): void;
}

/** Who may have another target asked in place of an answer. */
export interface AttemptJudge {
  /** @returns true when an error answer is given up, and `onPassedOver` follows */
  passesOver(attempt: Attempt, status: number): boolean;
  onPassedOver(): void;
  /** A good answer begins, and will be handed on. */
  onTaken(attempt: Attempt): void;
  /** @returns true when another attempt of the call is still under way, and takes its place */
  survives(attempt: Attempt): boolean;
  /** The client is still there: an answer that is given up, also at its very end, is then of no use. */
  readonly isWanted: boolean;
  /** The client has all that it asked for: how the upstream's connection ends is of no interest any more. */
  readonly isServed: boolean;
}

/** An answer that is given up is read to its end up to this size, so that its connection can be used again. */
const mostDiscarded = 64 * 1024;

/** An attempt whose answer is handed on while it comes. */
export class Attempt extends Trial implements UpstreamHandler, UpstreamExchange {
  exchange: UpstreamExchange | null = null;
  readonly #judge: AttemptJudge;
  readonly #handler: UpstreamHandler;
  #headSeen = false;
  /** Its answer has been given up, and the call goes on without it. */
  #isPassedOver = false;

  constructor(services: Services, candidates: Candidates, judge: AttemptJudge, handler: UpstreamHandler) {
    super(services, candidates);
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
    this.refused(head);
    if (!this.#judge.passesOver(this, status)) {
      this.#handler.onHead(head);
      return;
    }
    this.#isPassedOver = true;
    if (head.contentLength < 0 || head.contentLength > mostDiscarded) this.exchange?.cancel();
    this.#judge.onPassedOver();
  }

  onData(chunk: Buffer): boolean {
    return this.#isPassedOver || this.#handler.onData(chunk);
  }

  onEnd(): void {
    // It may find that the answer is of no use, and cancel.
    if (!this.#isPassedOver) this.#handler.onEnd();
    this.succeeded();
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#judge.isServed) this.succeeded();
    else this.failed(failure.reason, failure.headSeen);
    if (!this.#isPassedOver && !this.#judge.survives(this)) this.#handler.onFailure(failure);
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
