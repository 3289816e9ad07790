import { performance } from 'node:perf_hooks';
import type { Target, Upstream } from '../config/types.js';
import { GatewayError, guard } from '../errors.js';
import type { Call, ResolvedCall } from '../flow/call.js';
import type { Services } from '../flow/services.js';
import { resultOfFailure, resultOfStatus } from '../metrics/results.js';
import type { ResponseHead, UpstreamFailureReason } from '../upstream/client.js';
import { Backoff, backoffMs } from './backoff.js';
import { secondsOf } from './failure.js';
import type { TargetHealth } from './health.js';
import { type AttemptOutcome, type Finding, findingOfFailure, findingOfStatus, isOfKey } from './outcome.js';
import { type FailedAttempt, verdict } from './verdict.js';

/** Asks a target for a call: relays its answer, collects it, opens a socket there, or submits a task. */
export interface Asker {
  /**
   * Asks the present target, and tells `Attempts` when that comes to nothing.
   * @throws {GatewayError} for what this target cannot be asked: the next one is
   */
  ask(): void;
  /** No target can be asked any more. @param fault what the caller is told */
  onNoneLeft(fault: unknown): void;
}

/**
 * The attempts of one call: its targets in the order in which they are asked, and the present one of them with the key to
 * ask it with. What follows an attempt that failed is decided here by the `verdict`, for calls of every kind.
 */
export class Attempts {
  target: Target;
  health: TargetHealth;
  /** Index of the upstream's key; 0 where it has one, or none. */
  key = 0;
  /** When the present target was chosen (milliseconds of `performance.now()`). */
  lookedAt: number;
  readonly #services: Services;
  readonly #call: ResolvedCall;
  readonly #targets: readonly Target[];
  #index = 0;
  /** Keys of the present target that were asked with, and how often it was tried again with the same. */
  #keysAsked = 1;
  #repeats = 0;
  #asker: Asker | null = null;
  /** Milliseconds to wait before the attempt that `mayGoOn` has promised; null where it has promised none. */
  #wait: number | null = null;
  /** Why an attempt failed: a target that then cannot be asked at all is not the caller's mistake. */
  #failure: GatewayError | null = null;

  /**
   * @param targets at least one
   * @param now milliseconds of `performance.now()`
   */
  constructor(services: Services, call: ResolvedCall, targets: readonly Target[], now: number) {
    this.#services = services;
    this.#call = call;
    this.#targets = targets;
    this.lookedAt = now;
    this.target = targets[0] as Target;
    this.health = services.health.of(this.target);
    if (this.health.keys !== null) this.#chooseKey();
  }

  /** Asks the present target, or the next one of the list that can be asked this call. */
  start(asker: Asker): void {
    this.#asker = asker;
    this.#ask(asker);
  }

  /**
   * Decides what follows an attempt that failed.
   * @returns whether another one does: `goOn` begins it, and nothing else may be told the client
   */
  mayGoOn(attempt: FailedAttempt): boolean {
    this.#wait = this.#after(attempt);
    return this.#wait !== null;
  }

  /**
   * Begins the attempt that `mayGoOn` has promised, at once or after a back-off.
   * @param failure of the attempt before
   * @returns the back-off, for whoever has to end it when the client leaves; null where there is none
   */
  goOn(failure: GatewayError | null): Backoff | null {
    const asker = this.#asker;
    const wait = this.#wait;
    this.#wait = null;
    if (asker === null || wait === null) return null;
    this.#failure = failure ?? this.#failure;
    if (wait > 0)
      return new Backoff(
        wait,
        guard('timer', this.#call, () => this.#ask(asker), undefined),
      );
    this.#ask(asker);
    return null;
  }

  /** To be called with what `ask` would have thrown, where it is found out later that the target cannot be asked. */
  cannot(fault: unknown): void {
    const asker = this.#asker;
    if (asker === null) return;
    if (!(fault instanceof GatewayError)) asker.onNoneLeft(fault);
    else if (this.skip()) this.#ask(asker);
    else asker.onNoneLeft(this.#failure ?? fault);
  }

  #ask(asker: Asker): void {
    try {
      asker.ask();
    } catch (fault) {
      this.cannot(fault);
    }
  }

  /**
   * Makes the one that is to be asked after an attempt that failed the present one: the same target with another key
   * where the one before was refused, the next target, or the same again.
   * @returns milliseconds to wait before it is asked, or null when that attempt was the last
   */
  #after(attempt: FailedAttempt): number | null {
    const now = performance.now();
    this.lookedAt = now;
    if (this.#wantsOtherKey(attempt, now)) {
      this.#keysAsked++;
      this.#chooseKey();
      return this.#again(0);
    }
    const next = this.#nextAt(now);
    const { retries } = this.#call.running.snapshot.routing;
    const hasNext = next < this.#targets.length;
    switch (verdict(attempt, hasNext, this.#repeats < retries && this.#mayAsk(now))) {
      case 'next':
        this.#moveTo(next);
        return this.#again(0);
      case 'same': {
        const wait = backoffMs(++this.#repeats, Math.random());
        return now + wait < this.#call.validatedAt + this.#call.running.snapshot.timeouts.totalMs
          ? this.#again(wait)
          : null;
      }
      case 'stop':
        return null;
    }
  }

  /**
   * Goes on to the next target that may be asked now, for another reason than a failure.
   * @returns false when there is none
   */
  skip(): boolean {
    this.lookedAt = performance.now();
    const next = this.#nextAt(this.lookedAt);
    if (next >= this.#targets.length) return false;
    this.#moveTo(next);
    return true;
  }

  #again(wait: number): number {
    this.#call.retries++;
    this.#services.recorder.recordRetry(this.target);
    return wait;
  }

  #wantsOtherKey(attempt: FailedAttempt, now: number): boolean {
    const { keys } = this.health;
    return (
      keys !== null &&
      attempt.reason === 'error_answer' &&
      isOfKey(attempt.status) &&
      this.#keysAsked < keys.count &&
      keys.hasWell(now) &&
      this.#mayAsk(now) &&
      verdict(attempt, true, false) === 'next'
    );
  }

  /** Whether the present target may be asked again: as at first, a model's only one always is. */
  #mayAsk(now: number): boolean {
    return this.#call.model.targets.length === 1 || this.health.mayTake(now);
  }

  /** Index of the next target that may be asked; beyond the last when there is none. */
  #nextAt(now: number): number {
    let at = this.#index + 1;
    while (at < this.#targets.length && !this.#services.health.of(this.#targets[at] as Target).mayTake(now))
      at++;
    return at;
  }

  #moveTo(index: number): void {
    this.#index = index;
    this.target = this.#targets[index] as Target;
    this.health = this.#services.health.of(this.target);
    this.key = 0;
    this.#keysAsked = 1;
    this.#repeats = 0;
    if (this.health.keys !== null) this.#chooseKey();
  }

  #chooseKey(): void {
    this.key = this.health.keys?.choose(this.#call.affinity, Math.random, this.lookedAt) ?? 0;
  }
}

/** What is asked, and with which of its keys. */
type AttemptStart = Pick<Attempts, 'target' | 'health' | 'key' | 'lookedAt'>;

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
