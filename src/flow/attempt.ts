import type { Target } from '../config/types.js';
import type { GatewayError } from '../errors.js';
import { resultOfFailure, resultOfStatus } from '../metrics/results.js';
import type { Outcome, TargetHealth } from '../routing/health.js';
import { findingOfFailure, findingOfStatus } from '../routing/outcome.js';
import type {
  ResponseHead,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamFailureReason,
  UpstreamHandler,
} from '../upstream/client.js';
import { secondsOf } from './failure.js';
import type { Services } from './services.js';

/** Who decides what follows an attempt that failed before anything was relayed. */
export interface AttemptOwner {
  /** The upstream answered, and its answer is an error that only the caller's dialect can say. */
  onErrorAnswer(error: GatewayError, head: ResponseHead): void;
  /** @param failure null when the upstream answered, and its answer is of no use */
  onAttemptFailed(error: GatewayError, failure: UpstreamFailure | null): void;
}

/** Who may have another target asked in place of an answer. */
export interface AttemptJudge {
  /** @returns true when the answer is given up, and `onPassedOver` follows */
  passesOver(status: number): boolean;
  onPassedOver(): void;
  /** The client is still there: an answer that is given up, also at its very end, is then of no use. */
  readonly isWanted: boolean;
  /** The client has all that it asked for: how the upstream's connection ends is of no interest any more. */
  readonly isServed: boolean;
}

/** An answer that is given up is read to its end up to this size, so that its connection can be used again. */
const mostDiscarded = 64 * 1024;

/** One attempt of a call at a target: it tells the target's health and the metrics how it went. */
export class Attempt implements UpstreamHandler, UpstreamExchange {
  exchange: UpstreamExchange | null = null;
  readonly #services: Services;
  readonly #target: Target;
  readonly #health: TargetHealth;
  readonly #ticket: number;
  readonly #judge: AttemptJudge;
  readonly #handler: UpstreamHandler;
  #status = 0;
  #isOver = false;
  /** Its answer has been given up, and the call goes on without it. */
  #isPassedOver = false;

  constructor(services: Services, target: Target, judge: AttemptJudge, handler: UpstreamHandler) {
    this.#services = services;
    this.#target = target;
    this.#health = services.health.of(target);
    this.#ticket = this.#health.began(performance.now());
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
    const { status } = head;
    this.#status = status;
    if (status < 400) {
      this.#health.answered(this.#ticket);
      this.#handler.onHead(head);
      return;
    }
    const seconds = secondsOf(head.get('retry-after'));
    this.#endAnswered(seconds === null ? null : seconds * 1000);
    if (!this.#judge.passesOver(status)) {
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
    this.#endAnswered(null);
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#judge.isServed) this.#endAnswered(null);
    else this.#endFailed(failure.reason, failure.headSeen);
    if (!this.#isPassedOver) this.#handler.onFailure(failure);
  }

  resume(): void {
    this.exchange?.resume();
  }

  cancel(): void {
    if (this.#judge.isWanted && this.#status !== 0) this.#endFailed('unusable_answer', true);
    else this.leave();
    this.exchange?.cancel();
  }

  /** Nobody waits for its answer any more, which says nothing about its target. */
  leave(): void {
    this.#end('uncounted');
  }

  #endAnswered(retryAfterMs: number | null): void {
    if (this.#isOver) return;
    const finding = findingOfStatus(this.#status);
    this.#services.attempts.recordAttempt(this.#target, resultOfStatus(this.#status));
    const isFailed = finding === 'failure' || finding === 'limited';
    this.#end(isFailed ? { kind: finding, error: `status ${this.#status}`, retryAfterMs } : finding);
  }

  #endFailed(reason: UpstreamFailureReason | 'unusable_answer', headSeen: boolean): void {
    if (this.#isOver) return;
    const finding = findingOfFailure(reason, headSeen);
    this.#services.attempts.recordAttempt(this.#target, resultOfFailure(reason));
    const isFailed = finding === 'failure' || finding === 'limited';
    this.#end(isFailed ? { kind: finding, error: reason, retryAfterMs: null } : finding);
  }

  #end(outcome: Outcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#health.ended(performance.now(), this.#ticket, outcome);
  }
}
