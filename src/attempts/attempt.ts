import { performance } from 'node:perf_hooks';
import type { Target, Upstream } from '../config/types.js';
import type { GatewayError } from '../errors.js';
import type { Call } from '../flow/call.js';
import type { Services } from '../flow/services.js';
import { resultOfFailure, resultOfStatus } from '../metrics/results.js';
import type { ResponseHead, UpstreamFailureReason } from '../upstream/client.js';
import type { Attempts } from './attempts.js';
import { secondsOf } from './failure.js';
import type { TargetHealth } from './health.js';
import { type AttemptOutcome, type Finding, findingOfFailure, findingOfStatus } from './outcome.js';

/** What is asked, and with which of its keys. */
export type AttemptStart = Pick<Attempts, 'target' | 'health' | 'key' | 'lookedAt'>;

/**
 * One attempt of a call at a target, as the target's health and the metrics see it. It is under way from the start and
 * ends once: what is said of it after that changes nothing.
 */
export class Attempt {
  readonly target: Target;
  readonly #services: Services;
  readonly #health: TargetHealth;
  readonly #key: number;
  readonly #beganAt: number;
  readonly #ticket: number;
  #isOver = false;

  /** Begins an attempt at the present target. */
  constructor(services: Services, { target, health, key, lookedAt }: AttemptStart) {
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
    // It counts for the time in which its call began, which spares a look at the clock.
    this.#end(this.#beganAt, 'success');
    this.#services.recorder.recordAttempt(this.target, 'ok');
  }

  /**
   * The answer is an error.
   * @param status by which it is judged: see `readErrorAnswer`
   */
  refused(head: ResponseHead, status: number): void {
    if (this.#isOver) return;
    const seconds = secondsOf(head.get('retry-after'));
    this.#endFound(
      findingOfStatus(status),
      `status ${head.status}`,
      seconds === null ? null : seconds * 1000,
    );
    this.#services.recorder.recordAttempt(this.target, resultOfStatus(head.status));
  }

  /** What began as a good answer says that our account is not accepted. */
  refusedAs(status: number): void {
    if (this.#isOver) return;
    this.#endFound(findingOfStatus(status), `status ${status}`, null);
    this.#services.recorder.recordAttempt(this.target, resultOfStatus(status));
  }

  /** Takes note of an answer about our account. */
  report(call: Call, error: GatewayError): void {
    const { target } = this;
    this.#services.reportVendorAccount(call, { upstream: target.upstream, key: this.#key, error });
  }

  /** @param headSeen the answer had begun */
  failed(reason: UpstreamFailureReason | 'unusable_answer', headSeen: boolean): void {
    if (this.#isOver) return;
    this.#endFound(findingOfFailure(reason, headSeen), reason, null);
    this.#services.recorder.recordAttempt(this.target, resultOfFailure(reason));
  }

  /** Nobody waits for its answer any more, which says nothing about its target. */
  leave(): void {
    if (!this.#isOver) this.#end(this.#beganAt, 'uncounted');
  }

  #endFound(finding: Finding, error: string, retryAfterMs: number | null): void {
    const isOutcome = finding === 'success' || finding === 'uncounted';
    this.#end(performance.now(), isOutcome ? finding : { kind: finding, error, retryAfterMs });
  }

  #end(now: number, outcome: AttemptOutcome): void {
    this.#isOver = true;
    this.#health.ended(now, this.#ticket, outcome, this.#key);
  }
}

/**
 * Takes note that a target's upstream refused our account when it was asked about something that was made there, which
 * is no attempt of its own.
 * @param model the model's name at the upstream
 * @param apiKey that it was asked with
 */
export function noteVendorAccountRefused(
  services: Services,
  call: Call,
  asked: { readonly upstream: Upstream; readonly model: string; readonly apiKey: string | null },
  error: GatewayError,
): void {
  const { upstream, model, apiKey } = asked;
  const key = Math.max(0, upstream.apiKeys.indexOf(apiKey ?? ''));
  const target = call.model?.targets.find((each) => each.upstream === upstream && each.model === model);
  if (target === undefined) {
    services.reportVendorAccount(call, { upstream, key, error });
    return;
  }
  const start = { target, health: services.health.of(target), key, lookedAt: performance.now() };
  const attempt = new Attempt(services, start);
  attempt.refusedAs(error.vendorAccountStatus as number);
  attempt.report(call, error);
}
