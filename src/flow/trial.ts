import type { Target } from '../config/types.js';
import { resultOfFailure, resultOfStatus } from '../metrics/results.js';
import type { TargetHealth } from '../routing/health.js';
import { type Finding, findingOfFailure, findingOfStatus, type Outcome } from '../routing/outcome.js';
import type { ResponseHead, UpstreamFailureReason } from '../upstream/client.js';
import type { Candidates } from './candidates.js';
import { secondsOf } from './failure.js';
import type { Services } from './services.js';

/**
 * One attempt of a call at a target, as the target's health and the metrics see it. It is under way from the start and
 * ends once: what is said of it after that changes nothing.
 */
export class Trial {
  readonly target: Target;
  readonly #services: Services;
  readonly #health: TargetHealth;
  readonly #key: number;
  readonly #beganAt: number;
  readonly #ticket: number;
  #isOver = false;

  /** Begins an attempt at the present one of the candidates. */
  constructor(services: Services, { target, health, key, lookedAt }: Candidates) {
    this.target = target;
    this.#services = services;
    this.#health = health;
    this.#key = key;
    this.#beganAt = lookedAt;
    this.#ticket = health.began(lookedAt);
  }

  /** A good answer has begun, whose end may be minutes away. */
  answered(): void {
    this.#health.answered(this.#ticket);
  }

  /** A good answer has come whole. */
  succeeded(): void {
    if (this.#isOver) return;
    this.#services.attempts.recordAttempt(this.target, 'ok');
    // It counts for the time in which its call began, which spares a look at the clock.
    this.#end(this.#beganAt, 'success');
  }

  /** The answer is an error, whose head says all. */
  refused(head: ResponseHead): void {
    if (this.#isOver) return;
    const { status } = head;
    const seconds = secondsOf(head.get('retry-after'));
    this.#services.attempts.recordAttempt(this.target, resultOfStatus(status));
    this.#endFound(findingOfStatus(status), `status ${status}`, seconds === null ? null : seconds * 1000);
  }

  /** @param headSeen the answer had begun */
  failed(reason: UpstreamFailureReason | 'unusable_answer', headSeen: boolean): void {
    if (this.#isOver) return;
    this.#services.attempts.recordAttempt(this.target, resultOfFailure(reason));
    this.#endFound(findingOfFailure(reason, headSeen), reason, null);
  }

  /** Nobody waits for its answer any more, which says nothing about its target. */
  leave(): void {
    if (!this.#isOver) this.#end(this.#beganAt, 'uncounted');
  }

  #endFound(finding: Finding, error: string, retryAfterMs: number | null): void {
    const isOutcome = finding === 'success' || finding === 'uncounted';
    this.#end(performance.now(), isOutcome ? finding : { kind: finding, error, retryAfterMs });
  }

  #end(now: number, outcome: Outcome): void {
    this.#isOver = true;
    this.#health.ended(now, this.#ticket, outcome, this.#key);
  }
}
